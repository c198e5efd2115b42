import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { AppError } from '#core/errors/errors.ts';
import type { Migration, Reader } from '#kit/db/db.ts';

const keyBytes = 32;

/**
 * The migration that creates the key under which the replicas of a component issue connection tokens, and the index by
 * which a hub finds missed signals in the outbox; place it in the component's list under a name of its order.
 */
export function hubsMigration(name: string): Migration {
  return {
    name,
    up: async (db) => {
      await sql`create table hub_keys (
        single boolean primary key default true check (single),
        key bytea not null check (length(key) = 32),
        created_at timestamptz not null default now())`.execute(db);
      await sql`insert into hub_keys (key) values (${randomBytes(keyBytes)})`.execute(db);
      await sql`create index outbox_key on outbox (key, created_at)`.execute(db);
    },
  };
}

/** The key of `hubsMigration`. Errors: internal/HUB_KEY_MISSING. */
export async function loadHubKey<DB>(db: Reader<DB>): Promise<Buffer> {
  const { rows } = await sql<{ key: Buffer }>`select key from hub_keys`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new AppError('internal', 'HUB_KEY_MISSING', 'the key of the hubs is missing');
  return row.key;
}

import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Database, Migration } from '#kit/db/db.ts';

/** A cap on guessing: at most `limit` acts of `name` by `key` in `windowSeconds`. */
interface CapOptions {
  /** What is guessed, such as `login-email`. */
  readonly name: string;
  /** The counted party, such as an address. Only its hash is stored. */
  readonly key: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

interface CapRow {
  readonly taken: number;
  readonly retry_after: number;
}

/** The migration that creates the table `security_caps`; place it in the component's list under a name of its order. */
export function securityCapMigration(name: string): Migration {
  return {
    name,
    up: async (db) => {
      await sql`create table security_caps (
        name text not null,
        key_hash bytea not null,
        window_start timestamptz not null,
        taken integer not null,
        expires_at timestamptz not null,
        primary key (name, key_hash))`.execute(db);
      await sql`create index security_caps_expires_at on security_caps (expires_at)`.execute(db);
    },
  };
}

/**
 * Counts one act against a cap that all replicas share, in a transaction of its own: a refused act stays counted even
 * when its caller rolls back. The window opens with the first act and later ones do not prolong it. No profile switches
 * it off.
 *
 * @throws AppError `rate_limited` with the seconds until the window ends, from the act after the limit on.
 */
export async function securityCap<DB>(db: Database<DB>, options: CapOptions): Promise<void> {
  const keyHash = createHash('sha256').update(options.key).digest();
  const row = await db.transact(async (tx) => {
    const { rows } = await sql<CapRow>`
      insert into security_caps as cap (name, key_hash, window_start, taken, expires_at)
      values (${options.name}, ${keyHash}, now(), 1, now() + make_interval(secs => ${options.windowSeconds}))
      on conflict (name, key_hash) do update set
        taken = case when cap.expires_at <= now() then 1 else least(cap.taken + 1, 1000000000) end,
        window_start = case when cap.expires_at <= now() then now() else cap.window_start end,
        expires_at = case when cap.expires_at <= now() then excluded.expires_at else cap.expires_at end
      returning taken, ceil(extract(epoch from expires_at - clock_timestamp()))::integer as retry_after`.execute(
      tx,
    );
    return rows[0];
  });
  if (row === undefined || row.taken > options.limit) {
    throw new AppError('rate_limited', genericCode('rate_limited'), 'Too many attempts.', {
      retryAfterSeconds: Math.max(1, row?.retry_after ?? options.windowSeconds),
    });
  }
}

/** Subtracts one act after a success, which proves that it was no guess. Other acts stay counted. */
export async function refundCap<DB>(
  db: Database<DB>,
  cap: { readonly name: string; readonly key: string },
): Promise<void> {
  const keyHash = createHash('sha256').update(cap.key).digest();
  await db.transact((tx) =>
    sql`update security_caps set taken = taken - 1
      where name = ${cap.name} and key_hash = ${keyHash} and taken > 0`.execute(tx),
  );
}

/** Clears a count on the order of an authorised person. */
export async function liftCap<DB>(
  db: Database<DB>,
  cap: { readonly name: string; readonly key: string },
): Promise<void> {
  const keyHash = createHash('sha256').update(cap.key).digest();
  await db.transact((tx) =>
    sql`delete from security_caps where name = ${cap.name} and key_hash = ${keyHash}`.execute(tx),
  );
}

/** Deletes windows that ended; a job calls it periodically. Returns their number. */
export async function pruneCaps<DB>(db: Database<DB>): Promise<number> {
  const result = await db.transact((tx) =>
    sql`delete from security_caps where expires_at < now()`.execute(tx),
  );
  return Number(result.numAffectedRows ?? 0n);
}

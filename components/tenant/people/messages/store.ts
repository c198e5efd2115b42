import { sql } from 'kysely';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';

type DB = TenantDatabase;

interface NewMessage {
  readonly id: string;
  readonly sealed: Buffer;
  readonly createdAtMs: number;
}

export async function insertMessage(tx: Transactor<DB>, message: NewMessage): Promise<void> {
  const at = new Date(message.createdAtMs);
  await tx
    .insertInto('messages')
    .values({ id: message.id, sealed: message.sealed, due_at: at, created_at: at })
    .execute();
}

/** A message that one replica sends; the others see it again at `until`. */
interface LeasedMessage {
  readonly id: string;
  readonly sealed: Buffer;
  /** Times that it was leased, this one included. */
  readonly attempts: number;
  readonly createdAtMs: number;
}

/** Leases the message that is due for the longest time; undefined when none is due. */
export async function leaseMessage(
  tx: Transactor<DB>,
  lease: { readonly atMs: number; readonly untilMs: number },
): Promise<LeasedMessage | undefined> {
  const due = tx
    .selectFrom('messages')
    .select('id')
    .where('due_at', '<=', new Date(lease.atMs))
    .orderBy('due_at')
    .limit(1)
    .forUpdate()
    .skipLocked();
  const row = await tx
    .updateTable('messages')
    .set({ attempts: sql`attempts + 1`, due_at: new Date(lease.untilMs) })
    .where('id', '=', due)
    .returning(['id', 'sealed', 'attempts', 'created_at'])
    .executeTakeFirst();
  return (
    row && { id: row.id, sealed: row.sealed, attempts: row.attempts, createdAtMs: row.created_at.getTime() }
  );
}

export async function postponeMessage(tx: Transactor<DB>, id: string, dueAtMs: number): Promise<void> {
  await tx
    .updateTable('messages')
    .set({ due_at: new Date(dueAtMs) })
    .where('id', '=', id)
    .execute();
}

export async function deleteMessage(tx: Transactor<DB>, id: string): Promise<void> {
  await tx.deleteFrom('messages').where('id', '=', id).execute();
}

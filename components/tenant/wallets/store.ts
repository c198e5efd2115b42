import { type Expression, type RawBuilder, sql } from 'kysely';
import { AppError } from '#core/errors/errors.ts';
import type { WalletEvent } from '#core/events/wallet-events.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import { formatCursor, type OutboxCursor, outboxStart, parseCursor } from '#kit/db/outbox.ts';
import type { TenantDatabase } from '../database/schema.ts';

type DB = TenantDatabase;

/** The cursor of this service in the log of `source`; the start when nothing was read. */
export async function findCursor(db: Reader<DB>, source: string): Promise<OutboxCursor> {
  const row = await db
    .selectFrom('event_cursors')
    .select('position')
    .where('source', '=', source)
    .executeTakeFirst();
  return row === undefined ? outboxStart : cursorOf(row.position);
}

/** Locks the cursor until the transaction ends, so that one replica at a time advances it. */
export async function lockCursor(tx: Transactor<DB>, source: string): Promise<OutboxCursor> {
  const row = await tx
    .insertInto('event_cursors')
    .values({ source, position: formatCursor(outboxStart) })
    .onConflict((conflict) => conflict.column('source').doUpdateSet({ source }))
    .returning('position')
    .executeTakeFirstOrThrow();
  return cursorOf(row.position);
}

export async function saveCursor(tx: Transactor<DB>, source: string, cursor: OutboxCursor): Promise<void> {
  await tx
    .updateTable('event_cursors')
    .set({ position: formatCursor(cursor) })
    .where('source', '=', source)
    .execute();
}

/**
 * Stores the state of a person's wallet from an event. A creation never replaces an existing row, because concurrent
 * transactions are in the log in the order in which they began.
 */
export async function applyWalletEvent(tx: Transactor<DB>, { kind, fact }: WalletEvent): Promise<void> {
  const isActive = fact.status === 'Active';
  await tx
    .insertInto('user_wallets')
    .values({
      wallet_id: fact.walletId,
      platform_user_id: fact.ownerId,
      address: fact.address,
      is_active: isActive,
      created_at: new Date(fact.createdAt),
    })
    .onConflict((conflict) => {
      const known = conflict.column('wallet_id');
      return kind === 'WalletCreated' ? known.doNothing() : known.doUpdateSet({ is_active: isActive });
    })
    .execute();
}

/** For a select list: address of the oldest active wallet of the platform user in a column, null without one. */
export function oldestWalletOf(platformUserId: Expression<unknown>): RawBuilder<string | null> {
  return sql`(SELECT w.address FROM user_wallets w
    WHERE w.platform_user_id = ${platformUserId}::text AND w.is_active
    ORDER BY w.created_at, w.wallet_id LIMIT 1)`;
}

function cursorOf(text: string): OutboxCursor {
  const cursor = parseCursor(text);
  if (cursor === undefined)
    throw new AppError('internal', 'CURSOR_UNREADABLE', 'the stored cursor is malformed');
  return cursor;
}

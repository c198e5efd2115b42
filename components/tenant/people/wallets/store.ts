import { type Expression, type RawBuilder, sql } from 'kysely';
import type { WalletEvent } from '#core/events/wallet-events.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';

type DB = TenantDatabase;

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

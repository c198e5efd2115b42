import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { WalletDatabase } from '../../database/schema.ts';
import type { SecretPurpose } from '../envelope.ts';

/** A wrapped data key with what authenticates it. */
export interface WrappedKey {
  readonly walletId: string;
  readonly address: string;
  readonly purpose: SecretPurpose;
  readonly kekId: string;
  readonly wrappedKey: Buffer;
}

/** Number of data keys by the id of the key-encryption key that wraps them. */
export async function countByKek(db: Reader<WalletDatabase>): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('wallet_secrets')
    .select('kek_id')
    .select(sql<number>`count(*)::int`.as('total'))
    .groupBy('kek_id')
    .execute();
  return new Map(rows.map((row) => [row.kek_id, row.total]));
}

/** Data keys under one of `kekIds`, in the order of wallet ids after `after`. */
export async function listWrapped(
  db: Reader<WalletDatabase>,
  kekIds: readonly string[],
  window: { readonly after: string | undefined; readonly limit: number },
): Promise<WrappedKey[]> {
  const { after, limit } = window;
  const rows = await db
    .selectFrom('wallet_secrets as s')
    .innerJoin('wallets as w', 'w.id', 's.wallet_id')
    .select(['s.wallet_id', 'w.address', 's.purpose', 's.kek_id', 's.wrapped_key'])
    .where('s.kek_id', 'in', kekIds)
    .$if(after !== undefined, (query) => query.where('s.wallet_id', '>', after ?? ''))
    .orderBy('s.wallet_id')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    walletId: row.wallet_id,
    address: row.address,
    purpose: row.purpose,
    kekId: row.kek_id,
    wrappedKey: row.wrapped_key,
  }));
}

/** Replaces the wrapping of a data key unless another process did. */
export async function replaceWrapping(
  tx: Transactor<WalletDatabase>,
  before: WrappedKey,
  after: { readonly kekId: string; readonly wrappedKey: Buffer },
): Promise<void> {
  await tx
    .updateTable('wallet_secrets')
    .set({ kek_id: after.kekId, wrapped_key: after.wrappedKey })
    .where('wallet_id', '=', before.walletId)
    .where('kek_id', '=', before.kekId)
    .where('wrapped_key', '=', before.wrappedKey)
    .execute();
}

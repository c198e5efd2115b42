import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { transactionIdsOfDocket } from '../../ledger/sealed/store.ts';
import { subscribersOf } from '../subscriptions/store.ts';
import type { SealedFacts } from './events.ts';

/** Facts that complete the row of a docket: ids of transactions in [from, to), by position. */
export async function sealedFactsOf(
  db: Reader<RegisterSchema>,
  registerId: string,
  range: { readonly docketNumber: number; readonly from: number; readonly to: number },
): Promise<SealedFacts> {
  const { docketNumber, from, to } = range;
  const docket = await db
    .selectFrom('registers')
    .leftJoin('dockets', (join) =>
      join
        .onRef('dockets.register_no', '=', 'registers.register_no')
        .on('dockets.docket_number', '=', docketNumber),
    )
    .select(['registers.register_no as registerNo', 'dockets.timestamp as sealedAt'])
    .where('registers.register_id', '=', registerId)
    .executeTakeFirst();
  if (docket === undefined) return { organizationIds: [], sealedAt: undefined, txIds: [] };
  const { registerNo, sealedAt } = docket;
  const docketAt = { registerNo, docketNumber };
  const txIds = to <= from ? [] : await transactionIdsOfDocket(db, docketAt, { from, to });
  const organizationIds = docketNumber === 0 ? await subscribersOf(db, registerNo) : [];
  return {
    organizationIds,
    sealedAt: sealedAt ?? undefined,
    txIds,
  };
}

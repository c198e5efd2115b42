import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { recentSegments } from '../../ledger/segments/store.ts';
import { idsInValues } from '../../ledger/values/store.ts';

/** Registers whose data is due for deletion: deleted before an instant, or past their purge date. */
export async function findPurgeable(
  db: Reader<RegisterSchema>,
  due: { readonly deletedBefore: Date; readonly now: Date },
): Promise<number[]> {
  const rows = await db
    .selectFrom('registers')
    .select('register_no')
    .where((where) =>
      where.or([where('deleted_at', '<', due.deletedBefore), where('purge_after', '<=', due.now)]),
    )
    .where('purged_at', 'is', null)
    .orderBy('deleted_at')
    .limit(16)
    .execute();
  return rows.map((row) => row.register_no);
}

/** Deletes the oldest dockets of a register with all rows that belong to them; false when there was none. */
export async function purgeDockets(
  tx: Transactor<RegisterSchema>,
  registerNo: number,
  atMost: number,
): Promise<boolean> {
  const range = sql`register_no = ${registerNo} and docket_number in (
    select docket_number from dockets where register_no = ${registerNo} order by docket_number limit ${atMost})`;
  const ids = sql`${idsInValues(range)} union all select tx_id from transaction_rows where ${range}`;
  const segments = sql`segment = any(${recentSegments(sql`${registerNo}::integer`, sql`0`)})`;
  await sql`delete from transaction_successors where register_no = ${registerNo}
    and ${segments} and previous_tx_id in (${ids})`.execute(tx);
  await sql`delete from transaction_ids where register_no = ${registerNo}
    and ${segments} and tx_id in (${ids})`.execute(tx);
  await sql`delete from transaction_rows where ${range}`.execute(tx);
  await sql`delete from docket_values where ${range}`.execute(tx);
  await sql`delete from docket_attestations where ${range}`.execute(tx);
  const dockets = await sql`delete from dockets where ${range}`.execute(tx);
  return (dockets.numAffectedRows ?? 0n) > 0n;
}

const perRegister = [
  'segment_filters',
  'log_nodes',
  'register_projections',
  'sender_counters',
  'blueprint_counters',
  'transaction_recipients',
  'recipient_counters',
  'participant_keys',
  'blueprint_publications',
  'register_roster',
  'register_validators',
  'policy_versions',
  'governance_operations',
  'governance_proposals',
  'genesis_work',
  'subscriptions',
  'managed_changes',
] as const;

/**
 * Completes the purge of a register without dockets. Its row and its rules stay: the id cannot be reused, and a
 * validator that was offline for long still learns that the register is deleted.
 */
export async function finishPurge(
  tx: Transactor<RegisterSchema>,
  registerNo: number,
  at: Date,
): Promise<void> {
  for (const table of perRegister) {
    await sql`delete from ${sql.table(table)} where register_no = ${registerNo}`.execute(tx);
  }
  await tx
    .updateTable('registers')
    .set({ purged_at: at, metadata: '{}', description: null })
    .where('register_no', '=', registerNo)
    .execute();
}

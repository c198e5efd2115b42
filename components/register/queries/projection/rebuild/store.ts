import type { PoolClient } from 'pg';
import type { Transactor } from '#kit/db/db.ts';
import { statement } from '#kit/db/statement.ts';
import type { RegisterSchema } from '../../../database/schema.ts';

interface OfRegister {
  readonly registerNo: number;
}

const firstValue = statement<OfRegister>(
  'select min(docket_number) as first from docket_values where register_no = :registerNo',
);

const setBack = statement<OfRegister & { readonly first: number }>(
  'update register_projections set height = :first::bigint where register_no = :registerNo',
);

/** Rows that one step deletes. */
const SLICE_ROWS = 20_000;

const types = { address: 'text', docket_number: 'bigint', position: 'integer' } as const;

interface OfSlices extends OfRegister {
  readonly first: number;
}

/** The key of the last row of a slice, by column. */
type LastKey = Readonly<Record<string, string | number>>;

/**
 * Statements that delete the rows of dockets with a value, a slice after the other in the order of the primary key. Rows
 * of other dockets exist nowhere else. `offset 0` keeps the condition from becoming a join over all rows.
 */
function slicesOf(table: string, columns: readonly (keyof typeof types)[]) {
  const key = columns.join(', ');
  const end = columns.map((column) => `:${column}::${types[column]}`).join(', ');
  const chosen = `from ${table} t where t.register_no = :registerNo and t.docket_number >= :first::bigint
    and exists (select 1 from docket_values v
      where v.register_no = t.register_no and v.docket_number = t.docket_number offset 0)`;
  return {
    findLast: statement<OfSlices>(`select ${key} ${chosen} order by ${key} offset ${SLICE_ROWS - 1} limit 1`),
    deleteSlice: statement<OfSlices & LastKey>(`delete ${chosen} and (${key}) <= (${end})`),
    deleteRest: statement<OfSlices>(`delete ${chosen}`),
  };
}

const deletions = [
  slicesOf('transaction_rows', ['docket_number', 'position']),
  slicesOf('transaction_recipients', ['address', 'docket_number', 'position']),
];

const counters = [
  'delete from sender_counters where register_no = :registerNo',
  'delete from blueprint_counters where register_no = :registerNo',
  'delete from recipient_counters where register_no = :registerNo',
  `insert into sender_counters (register_no, sender_address, transaction_count)
    select register_no, sender_address, count(*) from transaction_rows where register_no = :registerNo group by 1, 2`,
  `insert into blueprint_counters (register_no, blueprint_id, transaction_count)
    select register_no, blueprint_id, count(*) from transaction_rows
    where register_no = :registerNo and octet_length(blueprint_id) <= 256 group by 1, 2`,
  `insert into recipient_counters (register_no, address, transaction_count, sent_count)
    select r.register_no, r.address, count(*), count(*) filter (where t.sender_address = r.address)
    from transaction_recipients r join transaction_rows t on t.register_no = r.register_no
      and t.docket_number = r.docket_number and t.position = r.position
    where r.register_no = :registerNo group by 1, 2`,
].map((text) => statement<OfRegister>(text));

const finish = statement<OfRegister>(
  'update register_projections set rebuild = false where register_no = :registerNo',
);

/** Deletes a slice of rows; false when there are none. */
async function deleteSome(client: PoolClient, of: OfSlices): Promise<boolean> {
  for (const { findLast, deleteSlice, deleteRest } of deletions) {
    const found = await client.query<LastKey>(findLast(of));
    const [last] = found.rows;
    const deleted = await client.query(last === undefined ? deleteRest(of) : deleteSlice({ ...last, ...of }));
    if (deleted.rowCount !== 0) return true;
  }
  return false;
}

/**
 * One step of writing index rows anew, in the open transaction; returns the cursor. The first step sets the cursor back
 * to the first docket with a value, so that answers no longer claim to cover what is deleted. Each step deletes a slice
 * of the rows of dockets with a value. When none are left, the totals are counted from the other rows, and the rebuild
 * is over: the rows are written as for any docket behind the head.
 *
 * @param height the present cursor, which stays when no docket has a value
 */
export async function rebuildStep(
  client: PoolClient,
  registerNo: number,
  height: number,
): Promise<{ readonly height: number; readonly isMore: boolean }> {
  await client.query('set local statement_timeout = 0');
  const found = await client.query<{ first: number | null }>(firstValue({ registerNo }));
  const first = found.rows[0]?.first ?? height;
  if (height !== first) await client.query(setBack({ registerNo, first }));
  if (await deleteSome(client, { registerNo, first })) return { height: first, isMore: true };
  for (const counter of counters) await client.query(counter({ registerNo }));
  await client.query(finish({ registerNo }));
  return { height: first, isMore: false };
}

/** Requests that the index rows of a register are written anew. */
export async function requestRebuild(tx: Transactor<RegisterSchema>, registerNo: number): Promise<void> {
  await tx
    .insertInto('register_projections')
    .values({ register_no: registerNo, rebuild: true })
    .onConflict((conflict) => conflict.column('register_no').doUpdateSet({ rebuild: true }))
    .execute();
}

import { sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';

/** Exact bytes of a sealed transaction with its place. */
export interface ExportedRow {
  readonly docketNumber: number;
  readonly position: number;
  readonly record: Buffer;
  readonly payload: Buffer;
}

/** A page ends after this many rows, or after this many bytes. */
const pageRows = 500;
export const pageBytes = 4 * 1024 * 1024;

/** Ids of the transactions of consecutive dockets without a value, by docket in docket order. */
export async function transactionIdsOf(
  db: Reader<RegisterSchema>,
  registerNo: number,
  range: { readonly from: number; readonly to: number },
): Promise<ReadonlyMap<number, readonly string[]>> {
  const rows = await db
    .selectFrom('transaction_rows')
    .select(['docket_number', 'tx_id'])
    .where('register_no', '=', registerNo)
    .where('docket_number', '>=', range.from)
    .where('docket_number', '<=', range.to)
    .where('record', 'is not', null)
    .orderBy('docket_number')
    .orderBy('position')
    .execute();
  const byDocket = Map.groupBy(rows, (row) => row.docket_number);
  return new Map([...byDocket].map(([number, of]) => [number, of.map((row) => row.tx_id.toString('hex'))]));
}

/**
 * The next transactions of consecutive dockets without a value after a place, bounded in rows and bytes. Sizes are known without
 * reading the bytes, so rows beyond the bound are not read.
 */
export async function nextTransactions(
  db: Reader<RegisterSchema>,
  registerNo: number,
  after: { readonly docketNumber: number; readonly position: number },
  lastDocket: number,
): Promise<ExportedRow[]> {
  const { docketNumber, position } = after;
  const { rows } = await sql<ExportedRow>`
    select docket_number as "docketNumber", position, record, payload from (
      select docket_number, position, record, payload, sum(octet_length(record) + octet_length(payload))
        over (order by docket_number, position rows between unbounded preceding and 1 preceding) as before_bytes
      from (
        select docket_number, position, record, payload from transaction_rows
        where register_no = ${registerNo} and record is not null and docket_number between ${docketNumber} and ${lastDocket}
          and (docket_number, position) > (${docketNumber}, ${position})
        order by docket_number, position limit ${pageRows}
      ) page
    ) sized
    where coalesce(before_bytes, 0) < ${pageBytes}
    order by docket_number, position`.execute(db);
  return rows;
}

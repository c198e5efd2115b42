import { sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../../database/schema.ts';

/**
 * Transactions of dockets without a value, which were stored before values existed: their rows hold record, payload,
 * leaf and hash form. The rows of other dockets have null there.
 */

type Db = Reader<RegisterSchema>;

/** Position of a row in its register: a greater one is newer. */
export interface Location {
  readonly docketNumber: number;
  readonly position: number;
}

/** A location in a register. */
export interface RegisterLocation extends Location {
  readonly registerNo: number;
}

export interface SealedRow {
  readonly docketNumber: number;
  readonly position: number;
  readonly leaf: Buffer;
  readonly payloadHashForm: string;
  readonly record: Buffer;
  readonly payload: Buffer;
}

/** The columns of a list; payloads are not read. */
export type SealedItem = Omit<SealedRow, 'leaf' | 'payload'>;

const unnested = (locations: readonly RegisterLocation[]) => sql`unnest(
    ${locations.map((one) => one.registerNo)}::integer[], ${locations.map((one) => one.docketNumber)}::bigint[],
    ${locations.map((one) => one.position)}::integer[]) with ordinality as i(register_no, docket_number, position, ord)`;

/** SQL that reads columns of the row at each location. The limit keeps the planner from reading more of the register. */
async function columnsAt<T>(
  db: Db,
  locations: readonly RegisterLocation[],
  columns: string,
): Promise<ReadonlyMap<number, T>> {
  if (locations.length === 0) return new Map();
  const { rows } = await sql<T & { readonly ord: number }>`select i.ord, t.* from ${unnested(locations)}
    cross join lateral (select ${sql.raw(columns)} from transaction_rows where register_no = i.register_no
      and docket_number = i.docket_number and position = i.position limit 1) t`.execute(db);
  return new Map(rows.map((row) => [row.ord - 1, row]));
}

/** Types of the transactions at locations, by index of the location. */
export function typesOfRows(
  db: Db,
  locations: readonly RegisterLocation[],
): Promise<ReadonlyMap<number, { readonly type: string }>> {
  return columnsAt(db, locations, 'type');
}

/** Leaves of the transactions at locations, by index of the location. */
export function leavesOfRows(
  db: Db,
  locations: readonly RegisterLocation[],
): Promise<ReadonlyMap<number, { readonly leaf: Buffer | null }>> {
  return columnsAt(db, locations, 'leaf');
}

/** Records at locations, by index of the location. */
export function recordsOfRows(
  db: Db,
  locations: readonly RegisterLocation[],
): Promise<ReadonlyMap<number, { readonly record: Buffer | null; readonly payloadHashForm: string | null }>> {
  return columnsAt(db, locations, 'record, payload_hash_form as "payloadHashForm"');
}

/** Transactions of a docket without a value, in docket order from a position on. */
export async function rowsOfDocket(
  db: Db,
  at: { readonly registerNo: number; readonly docketNumber: number },
  window: { readonly offset: number; readonly limit: number },
): Promise<SealedRow[]> {
  const { rows } = await sql<SealedRow>`select docket_number as "docketNumber", position, leaf,
      payload_hash_form as "payloadHashForm", record, payload
    from transaction_rows where register_no = ${at.registerNo} and docket_number = ${at.docketNumber}
      and position >= ${window.offset}::bigint and record is not null
    order by position limit ${window.limit}`.execute(db);
  return rows;
}

/** Ids and leaves of a docket without a value, in docket order, with positions in [from, to). */
export async function keysOfDocket(
  db: Db,
  at: { readonly registerNo: number; readonly docketNumber: number },
  { from, to }: { readonly from: number; readonly to: number },
): Promise<{ readonly txId: string; readonly leaf: Buffer }[]> {
  const { rows } = await sql<{ readonly txId: Buffer; readonly leaf: Buffer }>`select tx_id as "txId", leaf
    from transaction_rows where register_no = ${at.registerNo} and docket_number = ${at.docketNumber}
      and position >= ${from} and position < ${to} and leaf is not null order by position`.execute(db);
  return rows.map(({ txId, leaf }) => ({ txId: txId.toString('hex'), leaf }));
}

import { sql } from 'kysely';
import type { FindNode, NodePosition } from '#core/ledger/stored-proof.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';

/** Reads the stored hashes of the register log that a proof needs: O(log n) rows for any proof. */
export async function loadLogNodes(
  db: Reader<RegisterSchema>,
  registerNo: number,
  places: readonly NodePosition[],
): Promise<FindNode> {
  const found = new Map<string, Uint8Array>();
  if (places.length > 0) {
    const { rows } = await sql<{ level: number; position: number; hash: Buffer }>`
      select n.level, n.position, n.hash from log_nodes n
      join unnest(${places.map((place) => place.level)}::smallint[], ${places.map((place) => place.index)}::bigint[])
        as q(level, position) on n.level = q.level and n.position = q.position
      where n.register_no = ${registerNo}`.execute(db);
    for (const row of rows) found.set(`${row.level}/${row.position}`, row.hash);
  }
  return ({ level, index }) => found.get(`${level}/${index}`);
}

import { sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { Location } from '../../ledger/sealed/rows/store.ts';

/** Where a step or a publication is sealed. */
export interface LocatedStep extends Location {
  readonly isPublication: boolean;
  /** timestamp of the docket */
  readonly sealedAt: string;
}

/**
 * Steps and publications in the order of the ledger, from a position on, in dockets below a height. Both indexes are
 * written in the commit of a docket, so nothing below the register's height is missing, and other transactions are not
 * visited.
 */
export async function listSteps(
  db: Reader<RegisterSchema>,
  registerNo: number,
  range: { readonly from: Location; readonly height: number },
  limit: number,
): Promise<LocatedStep[]> {
  const { from, height } = range;
  const within = sql`register_no = ${registerNo} and docket_number < ${height}::bigint
    and (docket_number, position) >= (${from.docketNumber}::bigint, ${from.position}::bigint)
    order by docket_number, position limit ${limit}`;
  const { rows } = await sql<LocatedStep>`select s.docket_number as "docketNumber", s.position,
      s.is_publication as "isPublication", d.timestamp as "sealedAt"
    from ((select docket_number, position, false as is_publication from transaction_ids where is_step and ${within})
      union all (select docket_number, position, true from blueprint_publications where ${within})
      order by 1, 2 limit ${limit}) s
    join dockets d on d.register_no = ${registerNo} and d.docket_number = s.docket_number
    order by 1, 2`.execute(db);
  return rows;
}

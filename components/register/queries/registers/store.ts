import { type RawBuilder, sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { type Scope, scopedTo } from '../../registers/state/store.ts';
import type { Row } from '../language/row.ts';

type Db = Reader<RegisterSchema>;
type Fragment = RawBuilder<unknown>;

export interface VisibleRegister {
  readonly registerNo: number;
  readonly registerId: string;
}

/** Registers that a caller sees, newest first, at most `limit`. */
export async function visibleRegisters(
  db: Db,
  scope: Scope,
  query: {
    readonly registerIds: readonly string[] | undefined;
    readonly limit: number;
  },
): Promise<VisibleRegister[]> {
  let rows = db
    .selectFrom('registers')
    .select(['register_no as registerNo', 'register_id as registerId'])
    .where(scopedTo(scope));
  const { registerIds, limit } = query;
  if (registerIds !== undefined)
    rows = rows.where(sql<boolean>`register_id = any(${[...registerIds]}::text[])`);
  return rows.orderBy('register_no', 'desc').limit(limit).execute();
}

const registerRows = (scope: Scope) => sql`(
  select registers.register_no, 0 as docket_number, 0 as position, 0::bigint as created_micros, register_id, title,
    description, purpose, status, height, transaction_count, dev_mode, advertise,
    (metadata->>'sandbox') is not distinct from 'true' as sandbox, policy_version, validator_set_version, network_id,
    genesis_transaction_id, created_at, updated_at
  from registers join register_heads on register_heads.register_no = registers.register_no
  where ${scopedTo(scope)}
)`;

/** Registers that a caller sees and that satisfy `where`; newest first unless ordered otherwise. */
export async function listRegisterRows(
  db: Db,
  scope: Scope,
  query: {
    readonly where: Fragment;
    readonly orderings: readonly Fragment[];
    /** only registers older than this one */
    readonly after: number | undefined;
    readonly offset: number;
    readonly limit: number;
  },
): Promise<Row[]> {
  const order = sql.join([...query.orderings, sql`register_no desc`]);
  const found = await sql<Row>`select * from ${registerRows(scope)} c
    where ${query.where} and (${query.after ?? null}::integer is null or register_no < ${query.after ?? null}::integer)
    order by ${order} offset ${query.offset} limit ${query.limit}`.execute(db);
  return found.rows;
}

export async function countRegisterRows(db: Db, scope: Scope, where: Fragment): Promise<number> {
  const found = await sql<{
    total: number;
  }>`select count(*)::int as total from ${registerRows(scope)} c where ${where}`.execute(db);
  return found.rows[0]?.total ?? 0;
}

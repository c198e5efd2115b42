import { sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../../database/schema.ts';
import { type Scope, scopedTo } from '../../../registers/state/store.ts';

type Db = Reader<RegisterSchema>;

/** A register whose index rows are behind its dockets. */
export interface BehindRegister {
  readonly registerNo: number;
  /** height of the register */
  readonly head: number;
  /** dockets whose index rows are missing; 1 at least */
  readonly lag: number;
  /** the largest lag, of all such registers */
  readonly largestLag: number;
}

interface BehindQuery {
  readonly scope: Scope;
  /** only these registers */
  readonly registerIds?: readonly string[] | undefined;
  readonly limit: number;
}

/** Registers whose index rows are behind, or are to be written anew; the smallest lag first. */
export async function behindRegisters(db: Db, query: BehindQuery): Promise<BehindRegister[]> {
  const { scope, registerIds, limit } = query;
  const named =
    registerIds === undefined ? sql`true` : sql`registers.register_id = any(${[...registerIds]}::text[])`;
  const { rows } = await sql<BehindRegister>`select h.register_no as "registerNo", h.height as head,
      greatest(1, h.height - coalesce(p.height, 0)) as lag,
      max(greatest(1, h.height - coalesce(p.height, 0))) over () as "largestLag"
    from register_heads h join registers on registers.register_no = h.register_no
    left join register_projections p on p.register_no = h.register_no
    where registers.status <> 'Deleted' and ${scopedTo(scope)} and ${named}
      and (h.height > coalesce(p.height, 0) or p.rebuild) order by lag limit ${limit}`.execute(db);
  return rows;
}

/** Of the given registers, those whose index rows do not cover the given heights yet. */
export async function stillBehind<T extends Pick<BehindRegister, 'registerNo' | 'head'>>(
  db: Db,
  registers: readonly T[],
): Promise<readonly T[]> {
  const { rows } = await sql<{ readonly registerNo: number }>`select q.register_no as "registerNo"
    from unnest(${registers.map((one) => one.registerNo)}::integer[], ${registers.map((one) => one.head)}::bigint[])
      as q(register_no, head)
    left join register_projections p on p.register_no = q.register_no
    where coalesce(p.height, 0) < q.head`.execute(db);
  const numbers = new Set(rows.map(({ registerNo }) => registerNo));
  return registers.filter(({ registerNo }) => numbers.has(registerNo));
}

/** How far the index rows of a register are. */
interface ProjectionProgress {
  /** dockets whose index rows are written */
  readonly projected: number;
  /** height of the register */
  readonly head: number;
}

export async function projectionProgress(db: Db, registerNo: number): Promise<ProjectionProgress> {
  const row = await db
    .selectFrom('register_heads as h')
    .leftJoin('register_projections as p', 'p.register_no', 'h.register_no')
    .select(['p.height as projected', 'h.height as head'])
    .where('h.register_no', '=', registerNo)
    .executeTakeFirst();
  return { projected: row?.projected ?? 0, head: row?.head ?? 0 };
}

/** Dockets of a register whose index rows are written. */
export async function projectedHeight(db: Db, registerNo: number): Promise<number> {
  return (await projectionProgress(db, registerNo)).projected;
}

import { sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../../database/schema.ts';

type Db = Reader<RegisterSchema>;

/** A register whose index rows are behind its dockets. */
interface BehindRegister {
  readonly registerNo: number;
  /** height of the register */
  readonly head: number;
  /** dockets whose index rows are missing; 1 at least */
  readonly lag: number;
}

/** Registers whose index rows are behind, or are to be written anew; the smallest lag first. */
export async function behindRegisters(db: Db, limit: number): Promise<BehindRegister[]> {
  const { rows } = await sql<BehindRegister>`select h.register_no as "registerNo", h.height as head,
      greatest(1, h.height - coalesce(p.height, 0)) as lag
    from register_heads h join registers r on r.register_no = h.register_no
    left join register_projections p on p.register_no = h.register_no
    where r.status <> 'Deleted' and (h.height > coalesce(p.height, 0) or p.rebuild) order by lag limit ${limit}`.execute(
    db,
  );
  return rows;
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

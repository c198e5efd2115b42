import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { GenesisWork } from './genesis.ts';

export interface ClaimedGenesis {
  readonly registerNo: number;
  readonly attempts: number;
  readonly work: GenesisWork;
}

export async function insertGenesisWork(
  tx: Transactor<RegisterSchema>,
  registerNo: number,
  work: GenesisWork,
): Promise<void> {
  await tx
    .insertInto('genesis_work')
    .values({
      register_no: registerNo,
      submission: JSON.stringify(work),
      claimed_until: null,
      last_error: null,
    })
    .execute();
}

/** JSON text of the control record of a register whose docket 0 is not stored yet. */
export async function findGenesisPayload(
  db: Reader<RegisterSchema>,
  registerNo: number,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('genesis_work')
    .select('submission')
    .where('register_no', '=', registerNo)
    .executeTakeFirst();
  return row && (row.submission as GenesisWork).payloadText;
}

/** Claims unclaimed work for `leaseMs`. The commit of docket 0 deletes the row. */
export async function claimGenesisWork(
  tx: Transactor<RegisterSchema>,
  now: Date,
  leaseMs: number,
): Promise<ClaimedGenesis[]> {
  const rows = await sql<{ register_no: number; attempts: number; submission: GenesisWork }>`
    update genesis_work set attempts = attempts + 1, claimed_until = ${new Date(now.getTime() + leaseMs)}
    where register_no in (select register_no from genesis_work
      where claimed_until is null or claimed_until <= ${now}
      order by register_no limit 16 for update skip locked)
    returning register_no, attempts, submission`.execute(tx);
  return rows.rows.map((row) => ({
    registerNo: row.register_no,
    attempts: row.attempts,
    work: row.submission,
  }));
}

/** Makes due what was refused by a member of the register, if that member is one of the given validators. */
export async function expediteGenesisWork(
  tx: Transactor<RegisterSchema>,
  validatorIds: readonly string[],
  now: Date,
): Promise<void> {
  await tx
    .updateTable('genesis_work')
    .set({ claimed_until: now })
    .where('last_error', 'is not', null)
    .where('claimed_until', '>', now)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('register_validators')
          .select(sql`1`.as('one'))
          .whereRef('register_validators.register_no', '=', 'genesis_work.register_no')
          .where('validator_id', 'in', validatorIds),
      ),
    )
    .execute();
}

/** Releases claimed work until `retryAt`, with the outcome and the current submission. */
export async function releaseGenesisWork(
  tx: Transactor<RegisterSchema>,
  claim: { registerNo: number; work: GenesisWork; retryAt: Date; error: string | null },
): Promise<void> {
  await tx
    .updateTable('genesis_work')
    .set({
      submission: JSON.stringify(claim.work),
      claimed_until: claim.retryAt,
      last_error: claim.error,
    })
    .where('register_no', '=', claim.registerNo)
    .execute();
}

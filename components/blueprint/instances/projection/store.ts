import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type {
  InstanceRow,
  InstanceTable,
  InstanceTables,
  RoleRow,
  StepRow,
} from '../../database/instance-tables.ts';

type DB = InstanceTables;

/** The heads of instances of a register, by id. */
export async function loadHeads(
  db: Reader<DB>,
  registerId: string,
  instanceIds: readonly string[],
): Promise<InstanceTable[]> {
  if (instanceIds.length === 0) return [];
  return db
    .selectFrom('instances')
    .selectAll()
    .where('register_id', '=', registerId)
    .where('instance_id', 'in', instanceIds)
    .execute();
}

/** Writes instances as a page of steps leaves them, the steps, and the wallets that they bind. */
export async function writePage(
  tx: Transactor<DB>,
  page: {
    readonly instances: readonly InstanceRow[];
    readonly steps: readonly StepRow[];
    readonly roles: readonly RoleRow[];
  },
): Promise<void> {
  if (page.steps.length === 0) return;
  await tx
    .insertInto('steps')
    .values([...page.steps])
    .execute();
  await tx
    .insertInto('instances')
    .values([...page.instances])
    .onConflict((conflict) =>
      conflict.columns(['register_id', 'instance_id']).doUpdateSet({
        last_tx_id: sql`excluded.last_tx_id`,
        seq: sql`excluded.seq`,
        routing: sql`excluded.routing`,
        state: sql`excluded.state`,
        state_reason: sql`excluded.state_reason`,
        completed_count: sql`excluded.completed_count`,
        updated_at: sql`excluded.updated_at`,
        completed_at: sql`excluded.completed_at`,
        times_out_at: sql`excluded.times_out_at`,
      }),
    )
    .execute();
  if (page.roles.length === 0) return;
  await tx
    .insertInto('instance_roles')
    .values([...page.roles])
    .onConflict((conflict) => conflict.columns(['register_id', 'instance_id', 'participant_id']).doNothing())
    .execute();
}

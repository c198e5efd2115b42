import { registerAdvertised, registerDeleted } from '#core/events/register-events.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import { currentTraceId } from '#kit/telemetry/telemetry.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { Deletion } from '../state/store.ts';

/** Sets whether this node advertises a register; the peer service reads the change from the outbox. */
export async function setAdvertise(
  tx: Transactor<RegisterSchema>,
  register: {
    readonly registerNo: number;
    readonly registerId: string;
    readonly advertise: boolean;
    readonly at: Date;
  },
): Promise<void> {
  const { registerNo, registerId, advertise, at } = register;
  await tx
    .updateTable('registers')
    .set({ advertise, updated_at: at })
    .where('register_no', '=', registerNo)
    .execute();
  await appendEvent(tx, registerAdvertised({ registerId, advertise }));
}

/** Marks a register deleted: no longer in any list, without subscriptions; the housekeeping deletes its rows later. */
export async function markDeleted(
  tx: Transactor<RegisterSchema>,
  register: {
    readonly registerNo: number;
    readonly registerId: string;
    readonly at: Date;
    readonly policy: Deletion['policy'];
    readonly purgeAfter?: Date | undefined;
  },
): Promise<void> {
  const { registerNo, registerId, at, policy, purgeAfter } = register;
  const how = { deletion_policy: policy, purge_after: purgeAfter ?? null };
  const deleted = await tx
    .updateTable('registers')
    .set({ status: 'Deleted', advertise: false, deleted_at: at, updated_at: at, ...how })
    .where('register_no', '=', registerNo)
    .where('deleted_at', 'is', null)
    .returning('register_no')
    .execute();
  if (deleted.length === 0) return;
  const ended = await tx
    .deleteFrom('subscriptions')
    .where('register_no', '=', registerNo)
    .returning('organization_id')
    .execute();
  const organizationIds = ended.map((row) => row.organization_id).toSorted();
  await tx.deleteFrom('genesis_work').where('register_no', '=', registerNo).execute();
  await appendEvent(tx, registerDeleted({ registerId, organizationIds, traceId: currentTraceId() }));
}

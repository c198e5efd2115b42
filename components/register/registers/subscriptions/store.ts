import type { Reader, Transactor } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';

/** The organisations that subscribe to a register. */
export async function subscribersOf(db: Reader<RegisterSchema>, registerNo: number): Promise<string[]> {
  const rows = await db
    .selectFrom('subscriptions')
    .select('organization_id')
    .where('register_no', '=', registerNo)
    .orderBy('organization_id')
    .execute();
  return rows.map((row) => row.organization_id);
}

/** Subscribes an organisation to a register; a second time changes nothing. */
export async function subscribe(
  tx: Transactor<RegisterSchema>,
  subscription: { organizationId: string; registerNo: number; kind: 'Owner' | 'Reader'; at: Date },
): Promise<void> {
  await tx
    .insertInto('subscriptions')
    .values({
      organization_id: subscription.organizationId,
      register_no: subscription.registerNo,
      kind: subscription.kind,
      created_at: subscription.at,
    })
    .onConflict((conflict) => conflict.columns(['organization_id', 'register_no']).doNothing())
    .execute();
}

import type { Reader, Transactor } from '#kit/db/db.ts';
import type { BlueprintDatabase } from '../../database/schema.ts';

/** What a rehearsal passed for. */
interface Behaviour {
  readonly organizationId: string;
  readonly blueprintId: string;
  readonly execDefHash: string;
}

/** Whether a behaviour of a blueprint passed a rehearsal in an organisation. */
export async function hasPass(db: Reader<BlueprintDatabase>, behaviour: Behaviour): Promise<boolean> {
  const row = await db
    .selectFrom('rehearsal_passes')
    .select('id')
    .where('organization_id', '=', behaviour.organizationId)
    .where('blueprint_id', '=', behaviour.blueprintId)
    .where('exec_def_hash', '=', behaviour.execDefHash)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** The organisation that published a blueprint on a register first, as far as this service was asked to. */
export async function findPublishingOrganization(
  db: Reader<BlueprintDatabase>,
  registerId: string,
  blueprintId: string,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('submitted_publications')
    .select('organization_id')
    .where('register_id', '=', registerId)
    .where('blueprint_id', '=', blueprintId)
    .orderBy('published_at')
    .limit(1)
    .executeTakeFirst();
  return row?.organization_id;
}

interface Submitted {
  readonly registerId: string;
  readonly publicationTxId: string;
  readonly blueprintId: string;
  readonly organizationId: string;
  readonly at: Date;
}

/** Remembers that an organisation published; the first time counts. */
export async function storeSubmitted(tx: Transactor<BlueprintDatabase>, submitted: Submitted): Promise<void> {
  await tx
    .insertInto('submitted_publications')
    .values({
      register_id: submitted.registerId,
      publication_tx_id: submitted.publicationTxId,
      blueprint_id: submitted.blueprintId,
      organization_id: submitted.organizationId,
      published_at: submitted.at,
    })
    .onConflict((conflict) => conflict.columns(['register_id', 'publication_tx_id']).doNothing())
    .execute();
}

interface Override extends Submitted {
  readonly id: string;
  readonly execDefHash: string;
  readonly platformUserId: string;
  readonly reason: string | undefined;
}

/** Records that a person published without a rehearsal. */
export async function storeOverride(tx: Transactor<BlueprintDatabase>, override: Override): Promise<void> {
  await tx
    .insertInto('publish_overrides')
    .values({
      id: override.id,
      organization_id: override.organizationId,
      blueprint_id: override.blueprintId,
      register_id: override.registerId,
      exec_def_hash: override.execDefHash,
      publication_tx_id: override.publicationTxId,
      overridden_by_platform_user_id: override.platformUserId,
      overridden_at: override.at,
      reason: override.reason ?? null,
    })
    .execute();
}

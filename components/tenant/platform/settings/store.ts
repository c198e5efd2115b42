import type { Selectable } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { PlatformSettingsTable, TenantDatabase } from '../../database/schema.ts';

type DB = TenantDatabase;

export interface PlatformSettings {
  readonly publicOrgEnabled: boolean;
  /** Organisations that a person may create. */
  readonly maxOrgsPerUser: number;
  readonly updatedAtMs: number;
}

export async function getSettings(db: Reader<DB>): Promise<PlatformSettings> {
  return toSettings(await db.selectFrom('platform_settings').selectAll().executeTakeFirstOrThrow());
}

/** Locks the row until the transaction ends. */
export async function lockSettings(tx: Transactor<DB>): Promise<PlatformSettings> {
  return toSettings(
    await tx.selectFrom('platform_settings').selectAll().forUpdate().executeTakeFirstOrThrow(),
  );
}

/** Inserts the row if it does not exist. */
export async function insertSettings(tx: Transactor<DB>, settings: PlatformSettings): Promise<void> {
  await tx
    .insertInto('platform_settings')
    .values({ id: 1, ...rowOf(settings) })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export async function updateSettings(tx: Transactor<DB>, settings: PlatformSettings): Promise<void> {
  await tx.updateTable('platform_settings').set(rowOf(settings)).execute();
}

function rowOf({ publicOrgEnabled, maxOrgsPerUser, updatedAtMs }: PlatformSettings) {
  return {
    public_org_enabled: publicOrgEnabled,
    max_orgs_per_user: maxOrgsPerUser,
    updated_at: new Date(updatedAtMs),
  };
}

function toSettings(row: Selectable<PlatformSettingsTable>): PlatformSettings {
  return {
    publicOrgEnabled: row.public_org_enabled,
    maxOrgsPerUser: row.max_orgs_per_user,
    updatedAtMs: row.updated_at.getTime(),
  };
}

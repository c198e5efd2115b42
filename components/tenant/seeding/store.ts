import { sql } from 'kysely';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';

type DB = TenantDatabase;

/** Replicas that start together seed one after the other. */
export async function lockSeeding(tx: Transactor<DB>): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended('chancery.tenant.seeding', 0))`.execute(tx);
}

export async function insertSettings(
  tx: Transactor<DB>,
  settings: { readonly publicOrgEnabled: boolean; readonly maxOrgsPerUser: number; readonly atMs: number },
): Promise<void> {
  await tx
    .insertInto('platform_settings')
    .values({
      id: 1,
      public_org_enabled: settings.publicOrgEnabled,
      max_orgs_per_user: settings.maxOrgsPerUser,
      updated_at: new Date(settings.atMs),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export async function hasIdentity(tx: Transactor<DB>, identityId: string): Promise<boolean> {
  const row = await tx
    .selectFrom('user_identities')
    .select('id')
    .where('id', '=', identityId)
    .executeTakeFirst();
  return row !== undefined;
}

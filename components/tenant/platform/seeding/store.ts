import { sql } from 'kysely';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';

type DB = TenantDatabase;

/** Serialises the seeding of replicas that start concurrently. */
export async function lockSeeding(tx: Transactor<DB>): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended('chancery.tenant.seeding', 0))`.execute(tx);
}

export async function hasIdentity(tx: Transactor<DB>, identityId: string): Promise<boolean> {
  const row = await tx
    .selectFrom('user_identities')
    .select('id')
    .where('id', '=', identityId)
    .executeTakeFirst();
  return row !== undefined;
}

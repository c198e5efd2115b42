import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { StoredOrganization } from '../organization.ts';
import { toOrganization } from '../store.ts';
import type { ManagedOrganization } from './organization.ts';

type DB = TenantDatabase;

export type ManagedKey = { readonly organizationId: string } | { readonly resourceUid: string };

/** Includes deleted organisations. */
export async function findManaged(db: Reader<DB>, key: ManagedKey): Promise<ManagedOrganization | undefined> {
  const [column, value] =
    'resourceUid' in key
      ? (['resource_uid', key.resourceUid] as const)
      : (['id', key.organizationId] as const);
  const row = await db
    .selectFrom('organizations')
    .selectAll()
    .select((from) =>
      from
        .selectFrom('user_identities')
        .whereRef('user_identities.organization_id', '=', 'organizations.id')
        .where('user_identities.status', '<>', 'Deleted')
        .select(sql<number>`count(*)::int`.as('users'))
        .as('user_count'),
    )
    .where(column, '=', value)
    .executeTakeFirst();
  return row && { ...toOrganization(row), userCount: row.user_count ?? 0 };
}

/** Serialises the requests for one resource, so that its organisation is created once. */
export async function lockResource(tx: Transactor<DB>, resourceUid: string): Promise<void> {
  const name = `chancery.tenant.resource.${resourceUid}`;
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(tx);
}

/** Locks the organisation of a resource until the transaction ends. */
export async function lockManaged(
  tx: Transactor<DB>,
  resourceUid: string,
): Promise<StoredOrganization | undefined> {
  const row = await tx
    .selectFrom('organizations')
    .selectAll()
    .where('resource_uid', '=', resourceUid)
    .forUpdate()
    .executeTakeFirst();
  return row && toOrganization(row);
}

/** The organisation that holds a subdomain. Subdomains are never reused, so it may be a deleted one. */
export async function findHolder(db: Reader<DB>, subdomain: string): Promise<StoredOrganization | undefined> {
  const row = await db
    .selectFrom('organizations')
    .selectAll()
    .where('subdomain', '=', subdomain)
    .executeTakeFirst();
  return row && toOrganization(row);
}

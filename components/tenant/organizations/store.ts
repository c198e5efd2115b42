import type { Selectable } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { Branding, OrganizationTable, TenantDatabase } from '../database/schema.ts';
import type { Organization } from './organization.ts';

type DB = TenantDatabase;

export async function findOrganization(db: Reader<DB>, id: string): Promise<Organization | undefined> {
  const row = await living(db).where('id', '=', id).executeTakeFirst();
  return row && toOrganization(row);
}

export async function findOrganizationBySubdomain(
  db: Reader<DB>,
  subdomain: string,
): Promise<Organization | undefined> {
  const row = await living(db).where('subdomain', '=', subdomain).executeTakeFirst();
  return row && toOrganization(row);
}

export async function listOrganizations(db: Reader<DB>): Promise<Organization[]> {
  return (await living(db).orderBy('name').orderBy('id').execute()).map(toOrganization);
}

/** The organisations a person belongs to. */
export async function listOrganizationsOf(db: Reader<DB>, platformUserId: string): Promise<Organization[]> {
  const rows = await living(db)
    .where('id', 'in', (from) =>
      from
        .selectFrom('user_identities')
        .select('organization_id')
        .where('platform_user_id', '=', platformUserId)
        .where('status', '=', 'Active'),
    )
    .orderBy('name')
    .orderBy('id')
    .execute();
  return rows.map(toOrganization);
}

export async function isMember(
  db: Reader<DB>,
  organizationId: string,
  platformUserId: string,
): Promise<boolean> {
  const row = await db
    .selectFrom('user_identities')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('platform_user_id', '=', platformUserId)
    .where('status', '=', 'Active')
    .executeTakeFirst();
  return row !== undefined;
}

export interface NewOrganizationRow {
  readonly id: string;
  readonly name: string;
  readonly subdomain: string;
  readonly orgType: 'Standard' | 'Public';
  readonly status: 'Active' | 'Suspended';
  readonly isPlatformOrg: boolean;
  readonly selfRegistrationEnabled: boolean;
  readonly branding: Branding;
  readonly creatorIdentityId?: string | undefined;
  readonly createdAtMs: number;
}

/** False when the id or the subdomain is taken, also by a deleted organisation. */
export async function insertOrganization(tx: Transactor<DB>, row: NewOrganizationRow): Promise<boolean> {
  const inserted = await tx
    .insertInto('organizations')
    .values({
      id: row.id,
      name: row.name,
      subdomain: row.subdomain,
      status: row.status,
      org_type: row.orgType,
      is_platform_org: row.isPlatformOrg,
      self_registration_enabled: row.selfRegistrationEnabled,
      branding: JSON.stringify(row.branding),
      creator_identity_id: row.creatorIdentityId ?? null,
      created_at: new Date(row.createdAtMs),
      deleted_at: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}

export async function getMaxOrganizationsPerUser(db: Reader<DB>): Promise<number> {
  const row = await db.selectFrom('platform_settings').select('max_orgs_per_user').executeTakeFirstOrThrow();
  return row.max_orgs_per_user;
}

function living(db: Reader<DB>) {
  return db.selectFrom('organizations').selectAll().where('deleted_at', 'is', null);
}

function toOrganization(row: Selectable<OrganizationTable>): Organization {
  return {
    id: row.id,
    name: row.name,
    subdomain: row.subdomain,
    status: row.status === 'Active' ? 'Active' : 'Suspended',
    orgType: row.org_type === 'Public' ? 'Public' : 'Standard',
    isPlatformOrg: row.is_platform_org,
    branding: row.branding,
    createdAtMs: row.created_at.getTime(),
  };
}

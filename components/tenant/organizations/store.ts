import { type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { Branding, OrganizationTable, TenantDatabase } from '../database/schema.ts';
import { opensOrganization } from '../people/memberships/store.ts';
import type { Organization, StoredOrganization } from './organization.ts';

type DB = TenantDatabase;

export async function findOrganization(db: Reader<DB>, id: string): Promise<StoredOrganization | undefined> {
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

/** An organisation by its subdomain, and whether it takes registrations. */
export async function findRegistrationTarget(
  db: Reader<DB>,
  subdomain: string,
): Promise<{ readonly organization: Organization; readonly takesRegistrations: boolean } | undefined> {
  const row = await living(db).where('subdomain', '=', subdomain).executeTakeFirst();
  if (row === undefined) return undefined;
  const takesRegistrations =
    row.status === 'Active' && row.org_type === 'Public' && row.self_registration_enabled;
  return { organization: toOrganization(row), takesRegistrations };
}

export async function listOrganizations(db: Reader<DB>): Promise<Organization[]> {
  return (await living(db).orderBy('name').orderBy('id').execute()).map(toOrganization);
}

/** An organisation with the number of its members. */
export interface CountedOrganization extends Organization {
  readonly userCount: number;
}

/** A page of all organisations by name, and their total number. */
export async function pageOrganizations(
  db: Reader<DB>,
  filter: { readonly status?: Organization['status'] | undefined },
  window: { readonly offset: number; readonly limit: number },
): Promise<{ organizations: CountedOrganization[]; totalCount: number }> {
  const { status } = filter;
  const chosen = status === undefined ? living(db) : living(db).where('status', '=', status);
  const { total } = await chosen
    .clearSelect()
    .select(sql<number>`count(*)::int`.as('total'))
    .executeTakeFirstOrThrow();
  const rows = await chosen
    .select((from) =>
      from
        .selectFrom('user_identities as i')
        .select(sql<number>`count(*)::int`.as('users'))
        .whereRef('i.organization_id', '=', 'organizations.id')
        .where('i.status', '<>', 'Deleted')
        .as('users'),
    )
    .orderBy('name')
    .orderBy('id')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  const organizations = rows.map((row) => ({ ...toOrganization(row), userCount: row.users ?? 0 }));
  return { organizations, totalCount: total };
}

/** The organisations a person belongs to. */
export async function listOrganizationsOf(db: Reader<DB>, platformUserId: string): Promise<Organization[]> {
  const rows = await living(db)
    .where('id', 'in', (from) =>
      from
        .selectFrom('user_identities as i')
        .innerJoin('platform_users as p', 'p.id', 'i.platform_user_id')
        .select('i.organization_id')
        .where('p.id', '=', platformUserId)
        .where('i.status', '=', 'Active')
        .where(opensOrganization()),
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
    .selectFrom('user_identities as i')
    .innerJoin('platform_users as p', 'p.id', 'i.platform_user_id')
    .select('i.id')
    .where('i.organization_id', '=', organizationId)
    .where('p.id', '=', platformUserId)
    .where('i.status', '=', 'Active')
    .where(opensOrganization())
    .executeTakeFirst();
  return row !== undefined;
}

interface NewOrganizationRow {
  readonly id: string;
  readonly name: string;
  readonly subdomain: string;
  readonly orgType: 'Standard' | 'Public';
  readonly status: 'Active' | 'Suspended';
  readonly isPlatformOrg: boolean;
  readonly selfRegistrationEnabled: boolean;
  readonly branding: Branding;
  readonly creatorIdentityId?: string | undefined;
  readonly resourceUid?: string | undefined;
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
      resource_uid: row.resourceUid ?? null,
      purged_at: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}

/** Locks the row until the transaction ends, also of a deleted organisation. Sign-ins to it wait. */
export async function lockOrganization(
  tx: Transactor<DB>,
  id: string,
): Promise<StoredOrganization | undefined> {
  const row = await tx
    .selectFrom('organizations')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  return row && toOrganization(row);
}

/**
 * Whether members may get tokens of the organisation; a lock keeps the answer valid until the transaction ends. Without
 * the lock, a sign-in that read the status Active could commit its session after a suspension that did not see it.
 */
export async function lockOpenOrganization(tx: Transactor<DB>, id: string): Promise<boolean> {
  const row = await tx
    .selectFrom('organizations')
    .select(['status', 'deleted_at'])
    .where('id', '=', id)
    .forKeyShare()
    .executeTakeFirst();
  return row?.status === 'Active' && row.deleted_at === null;
}

interface OrganizationChange {
  readonly name?: string | undefined;
  readonly branding?: Branding | undefined;
  readonly status?: Organization['status'] | undefined;
  readonly selfRegistrationEnabled?: boolean | undefined;
  readonly auditRetentionMonths?: number | undefined;
  /** Null releases the organisation. */
  readonly resourceUid?: string | null | undefined;
  readonly deletedAtMs?: number | undefined;
}

export async function updateOrganization(
  tx: Transactor<DB>,
  id: string,
  change: OrganizationChange,
): Promise<void> {
  const { name, branding, status, selfRegistrationEnabled, auditRetentionMonths, resourceUid, deletedAtMs } =
    change;
  await tx
    .updateTable('organizations')
    .set({
      version: sql`version + 1`,
      ...(name === undefined ? {} : { name }),
      ...(branding === undefined ? {} : { branding: JSON.stringify(branding) }),
      ...(status === undefined ? {} : { status }),
      ...(selfRegistrationEnabled === undefined
        ? {}
        : { self_registration_enabled: selfRegistrationEnabled }),
      ...(auditRetentionMonths === undefined ? {} : { audit_retention_months: auditRetentionMonths }),
      ...(resourceUid === undefined ? {} : { resource_uid: resourceUid }),
      ...(deletedAtMs === undefined ? {} : { deleted_at: new Date(deletedAtMs) }),
    })
    .where('id', '=', id)
    .execute();
}

/** Organisations deleted before an instant and not purged. Their rows are locked; concurrent transactions skip them. */
export async function lockDeletedBefore(
  tx: Transactor<DB>,
  beforeMs: number,
  limit: number,
): Promise<string[]> {
  const rows = await tx
    .selectFrom('organizations')
    .select('id')
    .where('deleted_at', '<', new Date(beforeMs))
    .where('purged_at', 'is', null)
    .orderBy('deleted_at')
    .limit(limit)
    .forUpdate()
    .skipLocked()
    .execute();
  return rows.map((row) => row.id);
}

/** Deletes the members of a deleted organisation; its name and subdomain stay taken. */
export async function purgeOrganization(tx: Transactor<DB>, id: string, atMs: number): Promise<void> {
  await tx.deleteFrom('refresh_families').where('organization_id', '=', id).execute();
  await tx.deleteFrom('user_identities').where('organization_id', '=', id).execute();
  await tx
    .updateTable('platform_users')
    .set({ default_organization_id: null })
    .where('default_organization_id', '=', id)
    .execute();
  await tx
    .updateTable('organizations')
    .set({ branding: '{}', creator_identity_id: null, purged_at: new Date(atMs) })
    .where('id', '=', id)
    .execute();
}

function living(db: Reader<DB>) {
  return db.selectFrom('organizations').selectAll().where('deleted_at', 'is', null);
}

export function toOrganization(row: Selectable<OrganizationTable>): StoredOrganization {
  return {
    id: row.id,
    name: row.name,
    subdomain: row.subdomain,
    status: row.status === 'Active' ? 'Active' : 'Suspended',
    orgType: row.org_type === 'Public' ? 'Public' : 'Standard',
    isPlatformOrg: row.is_platform_org,
    branding: row.branding,
    auditRetentionMonths: row.audit_retention_months,
    createdAtMs: row.created_at.getTime(),
    selfRegistrationEnabled: row.self_registration_enabled,
    resourceUid: row.resource_uid ?? undefined,
    version: row.version,
    deletedAtMs: row.deleted_at?.getTime(),
  };
}

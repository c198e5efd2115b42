import { type RawBuilder, type Selectable, type SqlBool, sql } from 'kysely';
import { isRole, type Role } from '#core/identity/roles.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase, UserIdentityTable } from '../../database/schema.ts';
import { oldestWalletOf } from '../wallets/store.ts';
import type { Membership, OrganizationUser, UserStatus } from './membership.ts';

type DB = TenantDatabase;

interface NewIdentityRow {
  readonly id: string;
  readonly organizationId: string;
  readonly platformUserId: string;
  readonly email: string | undefined;
  readonly displayName: string;
  readonly roles: readonly string[];
  readonly provisionedVia: 'Local' | 'AdminCreated' | 'Oidc' | 'SocialLogin' | 'Passkey';
  readonly createdAtMs: number;
}

/**
 * The id of the person in the organisation. A removed user gets the earlier id again, because audit events refer to it.
 * Undefined when the person already is a member.
 */
export async function insertIdentity(tx: Transactor<DB>, row: NewIdentityRow): Promise<string | undefined> {
  const values = {
    email: row.email ?? null,
    display_name: row.displayName,
    roles: [...row.roles],
    status: 'Active',
    provisioned_via: row.provisionedVia,
    created_at: new Date(row.createdAtMs),
    last_login_at: null,
  };
  const { id, organizationId: organization_id, platformUserId: platform_user_id } = row;
  const inserted = await tx
    .insertInto('user_identities')
    .values({ id, organization_id, platform_user_id, ...values })
    .onConflict((conflict) =>
      conflict
        .columns(['organization_id', 'platform_user_id'])
        .doUpdateSet(values)
        .where('user_identities.status', '=', 'Deleted'),
    )
    .returning('id')
    .executeTakeFirst();
  return inserted?.id;
}

export async function listMemberships(db: Reader<DB>, platformUserId: string): Promise<Membership[]> {
  const rows = await memberships(db).where('i.platform_user_id', '=', platformUserId).execute();
  return rows.map(toMembership);
}

export async function findMembership(db: Reader<DB>, identityId: string): Promise<Membership | undefined> {
  const row = await memberships(db).where('i.id', '=', identityId).executeTakeFirst();
  return row && toMembership(row);
}

/** By identity id or by platform user id, inside one organisation. */
export async function findMembershipIn(
  db: Reader<DB>,
  organizationId: string,
  userId: string,
): Promise<Membership | undefined> {
  const row = await memberships(db)
    .where('i.organization_id', '=', organizationId)
    .where((where) => where.or([where('i.id', '=', userId), where('i.platform_user_id', '=', userId)]))
    .executeTakeFirst();
  return row && toMembership(row);
}

export async function listUsers(
  db: Reader<DB>,
  organizationId: string,
  window: { readonly offset: number; readonly limit: number },
): Promise<{ users: OrganizationUser[]; totalCount: number }> {
  const inOrganization = db
    .selectFrom('user_identities')
    .where('organization_id', '=', organizationId)
    .where('status', '<>', 'Deleted');
  const { total } = await inOrganization
    .select(sql<number>`count(*)::int`.as('total'))
    .executeTakeFirstOrThrow();
  const rows = await users(db, organizationId)
    .orderBy('i.created_at')
    .orderBy('i.id')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  return { users: rows.map(toUser), totalCount: total };
}

function users(db: Reader<DB>, organizationId: string) {
  return db
    .selectFrom('user_identities as i')
    .innerJoin('platform_users as p', 'p.id', 'i.platform_user_id')
    .where('i.organization_id', '=', organizationId)
    .where('i.status', '<>', 'Deleted')
    .selectAll('i')
    .select(
      sql<boolean>`p.email_verified AND (i.organization_id IS NOT DISTINCT FROM p.home_organization_id
        OR i.provisioned_via = 'Local' OR i.last_login_at IS NOT NULL)`.as('email_verified'),
    );
}

/** By identity id or by platform user id; removed users are not found. */
export async function findUser(
  db: Reader<DB>,
  organizationId: string,
  userId: string,
): Promise<OrganizationUser | undefined> {
  const row = await users(db, organizationId)
    .where((where) => where.or([where('i.id', '=', userId), where('i.platform_user_id', '=', userId)]))
    .executeTakeFirst();
  return row && toUser(row);
}

/** Number of active users of an organisation with a role. */
export async function countActiveWith(db: Reader<DB>, organizationId: string, role: Role): Promise<number> {
  const { total } = await db
    .selectFrom('user_identities as i')
    .innerJoin('platform_users as p', 'p.id', 'i.platform_user_id')
    .select(sql<number>`count(*)::int`.as('total'))
    .where('i.organization_id', '=', organizationId)
    .where('i.status', '=', 'Active')
    .where('p.status', '=', 'Active')
    .where(opensOrganization())
    .where(sql<boolean>`${role} = any(i.roles)`)
    .executeTakeFirstOrThrow();
  return total;
}

export interface IdentityChange {
  readonly status?: UserStatus;
  readonly roles?: readonly Role[];
}

export async function updateIdentity(
  tx: Transactor<DB>,
  identityId: string,
  { status, roles }: IdentityChange,
): Promise<void> {
  await tx
    .updateTable('user_identities')
    .set({
      ...(status === undefined ? {} : { status }),
      ...(roles === undefined ? {} : { roles: [...roles] }),
    })
    .where('id', '=', identityId)
    .execute();
}

interface SignedIn {
  readonly accountId: string;
  readonly identityId: string;
  readonly organizationId: string;
  readonly atMs: number;
  readonly rehashed?: string | undefined;
}

export async function recordSignIn(tx: Transactor<DB>, signedIn: SignedIn): Promise<void> {
  const at = new Date(signedIn.atMs);
  await tx
    .updateTable('platform_users')
    .set({
      last_login_at: at,
      default_organization_id: signedIn.organizationId,
      ...(signedIn.rehashed === undefined ? {} : { password_hash: signedIn.rehashed }),
    })
    .where('id', '=', signedIn.accountId)
    .execute();
  await tx
    .updateTable('user_identities')
    .set({ last_login_at: at })
    .where('id', '=', signedIn.identityId)
    .execute();
}

/**
 * Condition for a query with `platform_users` as p and `user_identities` as i: an account with an unverified address
 * gives access only to its home organisation, independent of other membership rows.
 */
export function opensOrganization(): RawBuilder<SqlBool> {
  return sql<SqlBool>`(p.email_verified OR i.organization_id = p.home_organization_id)`;
}

function memberships(db: Reader<DB>) {
  return db
    .selectFrom('user_identities as i')
    .innerJoin('organizations as o', 'o.id', 'i.organization_id')
    .innerJoin('platform_users as p', 'p.id', 'i.platform_user_id')
    .where('o.deleted_at', 'is', null)
    .where('i.status', '<>', 'Deleted')
    .where(opensOrganization())
    .orderBy('i.created_at')
    .orderBy('i.id')
    .select([
      'i.id as identity_id',
      'i.platform_user_id',
      'i.organization_id',
      'i.email',
      'i.display_name',
      'i.roles',
      'i.status',
      'i.created_at',
      'i.last_login_at',
      'i.profile_completed',
      'o.name as org_name',
      'o.subdomain as org_subdomain',
      'o.status as org_status',
      'o.org_type',
      'p.status as account_status',
      'p.password_change_required',
      oldestWalletOf(sql.ref('p.id')).as('wallet_address'),
    ]);
}

type MembershipRow = Awaited<ReturnType<ReturnType<typeof memberships>['execute']>>[number];

function toMembership(row: MembershipRow): Membership {
  return {
    identityId: row.identity_id,
    platformUserId: row.platform_user_id,
    organizationId: row.organization_id,
    organizationName: row.org_name,
    organizationSubdomain: row.org_subdomain,
    orgType: row.org_type === 'Public' ? 'Public' : 'Standard',
    isActive: [row.status, row.org_status, row.account_status].every((status) => status === 'Active'),
    email: row.email ?? undefined,
    displayName: row.display_name,
    roles: row.roles.filter(isRole),
    walletAddress: row.wallet_address ?? undefined,
    profileCompleted: row.profile_completed,
    passwordChangeRequired: row.password_change_required,
    createdAtMs: row.created_at.getTime(),
    lastLoginAtMs: row.last_login_at?.getTime(),
  };
}

function toUser(row: Selectable<UserIdentityTable> & { readonly email_verified: boolean }): OrganizationUser {
  return {
    id: row.id,
    platformUserId: row.platform_user_id,
    email: row.email ?? undefined,
    displayName: row.display_name,
    emailVerified: row.email_verified,
    roles: row.roles.filter(isRole),
    status: row.status === 'Active' ? 'Active' : row.status === 'Suspended' ? 'Suspended' : 'Deleted',
    createdAtMs: row.created_at.getTime(),
    lastLoginAtMs: row.last_login_at?.getTime(),
  };
}

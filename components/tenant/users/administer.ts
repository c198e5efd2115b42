import type { Caller } from '#core/identity/claims.ts';
import type { Role } from '#core/identity/roles.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { AuditEventType, Origin } from '../audit/audit.ts';
import { appendAuditEvent } from '../audit/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { tellPerson } from '../inbox/tell.ts';
import { requireCallerOrganization } from '../organizations/authority.ts';
import { lockOrganization } from '../organizations/store.ts';
import { endTokens } from '../tokens/end.ts';
import type { OrganizationUser, UserStatus } from './account.ts';
import { mayGrant, parseRoles } from './roles.ts';
import { countActiveWith, findUser, type IdentityChange, updateIdentity } from './store.ts';

export interface AdministerDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  /** Tells every service that there are new revocations. */
  readonly notify: () => void;
}

/** What somebody does to a user of an organisation. */
export interface UserAct {
  readonly organizationId: string;
  /** Id of the user in the organisation, or of the person. */
  readonly userId: string;
  readonly by: Caller;
  readonly origin: Origin;
}

/** Roles that an organisation does not lose with its last holder. */
const kept: readonly Role[] = ['SystemAdmin', 'Administrator'];

interface Change extends IdentityChange {
  readonly type: Extract<AuditEventType, 'UserUpdatedInOrganization' | 'UserRemovedFromOrganization'>;
}

/**
 * Suspends a user of an organisation or lets them in again. The person's other organisations stay as they are.
 * Throws what `change` throws.
 */
export function setUserStatus(
  deps: AdministerDeps,
  act: UserAct,
  status: Exclude<UserStatus, 'Deleted'>,
): Promise<OrganizationUser> {
  return change(deps, act, { type: 'UserUpdatedInOrganization', status });
}

/** Replaces the roles of a user; none means User. Throws UNKNOWN_ROLE, ROLE_NOT_GRANTABLE and what `change` throws. */
export async function setUserRoles(
  deps: AdministerDeps,
  act: UserAct,
  names: readonly string[],
): Promise<OrganizationUser> {
  requireCallerOrganization(act.by, act.organizationId);
  const roles = parseRoles(names);
  if (!mayGrantAll(act, roles)) throw refusal('ROLE_NOT_GRANTABLE');
  return change(deps, act, { type: 'UserUpdatedInOrganization', roles });
}

/** Takes a user out of an organisation. The account stays, and may be added again. Throws what `change` throws. */
export async function removeUser(deps: AdministerDeps, act: UserAct): Promise<void> {
  await change(deps, act, { type: 'UserRemovedFromOrganization', status: 'Deleted' });
}

/**
 * One change of one user while the organisation is held, so that of two that would leave it without an administrator one is
 * refused. It ends the user's sessions in the organisation: the roles in older tokens would be wrong.
 *
 * @throws FOREIGN_ORGANIZATION, ORGANIZATION_NOT_FOUND, USER_NOT_FOUND, USER_OUTRANKS, LAST_ADMINISTRATOR
 */
async function change(deps: AdministerDeps, act: UserAct, wanted: Change): Promise<OrganizationUser> {
  const { organizationId } = act;
  requireCallerOrganization(act.by, organizationId);
  const { before, after } = await deps.db.transact(async (tx) => {
    const organization = await lockOrganization(tx, organizationId);
    if (organization === undefined || organization.deletedAtMs !== undefined) {
      throw refusal('ORGANIZATION_NOT_FOUND');
    }
    const user = await findUser(tx, organizationId, act.userId);
    if (user === undefined) throw refusal('USER_NOT_FOUND');
    if (!mayGrantAll(act, user.roles)) throw refusal('USER_OUTRANKS');
    const { status = user.status, roles = user.roles } = wanted;
    const next = { ...user, status, roles };
    if (status === user.status && String(roles) === String(user.roles)) return { before: user, after: user };
    await requireHolders(tx, organizationId, user, next);
    await updateIdentity(tx, user.id, { status, roles });
    await record(tx, deps, { act, user, wanted, organizationName: organization.name });
    return { before: user, after: next };
  });
  if (after !== before) deps.notify();
  return after;
}

function mayGrantAll({ by, organizationId }: UserAct, roles: readonly Role[]): boolean {
  const isSystem = organizationId === SYSTEM_ORGANIZATION_ID;
  return roles.every((role) => mayGrant(by.roles, role, isSystem));
}

async function requireHolders(
  tx: Transactor<TenantDatabase>,
  organizationId: string,
  before: OrganizationUser,
  after: OrganizationUser,
): Promise<void> {
  const holds = (user: OrganizationUser, role: Role) => user.status === 'Active' && user.roles.includes(role);
  for (const role of kept) {
    if (!holds(before, role) || holds(after, role)) continue;
    if ((await countActiveWith(tx, organizationId, role)) <= 1) throw refusal('LAST_ADMINISTRATOR');
  }
}

interface Recorded {
  readonly act: UserAct;
  readonly user: OrganizationUser;
  readonly wanted: Change;
  readonly organizationName: string;
}

async function record(
  tx: Transactor<TenantDatabase>,
  deps: AdministerDeps,
  recorded: Recorded,
): Promise<void> {
  const { act, user, wanted } = recorded;
  const { type, status, roles } = wanted;
  // read after the lock: tokens of sign-ins that came before it were issued before this instant
  const atMs = deps.clock.nowMs();
  const families = { identityId: user.id };
  await endTokens(tx, { kind: 'identity', key: user.id, families, reason: 'user-changed', atMs });
  const eventId = await appendAuditEvent(tx, {
    organizationId: act.organizationId,
    occurredAtMs: atMs,
    type,
    identityId: user.id,
    platformUserId: user.platformUserId,
    origin: act.origin,
    success: true,
    details: {
      by: act.by.subject,
      ...(status === undefined ? {} : { status }),
      ...(roles === undefined ? {} : { roles, before: user.roles }),
    },
  });
  await tell(tx, recorded, { atMs, eventId });
}

/** Of a suspension nobody is told: who is out reads no inbox there, and the organisation says why. */
async function tell(
  tx: Transactor<TenantDatabase>,
  recorded: Recorded,
  { atMs, eventId }: { readonly atMs: number; readonly eventId: string },
): Promise<void> {
  const { act, user, wanted, organizationName } = recorded;
  const isRemoval = wanted.type === 'UserRemovedFromOrganization';
  if (!isRemoval && wanted.roles === undefined) return;
  const told = isRemoval
    ? {
        eventKey: 'org-membership-removed',
        iconKey: 'membership.removed',
        title: `You no longer belong to ${organizationName}`,
      }
    : {
        eventKey: 'org-membership-role-changed',
        iconKey: 'membership.role-changed',
        title: `Your roles in ${organizationName} have changed`,
        summary: `Roles: ${wanted.roles?.join(', ')}.`,
        detailHref: `/api/organizations/${act.organizationId}`,
      };
  await tellPerson(tx, {
    ...told,
    platformUserId: user.platformUserId,
    category: 'Membership',
    about: act.organizationId,
    naturalKey: eventId,
    atMs,
  });
}

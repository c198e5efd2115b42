import type { Caller } from '#core/identity/claims.ts';
import type { Role } from '#core/identity/roles.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { AuditEventType } from '../../audit/log/event.ts';
import { appendAuditEvent } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { requireCallerOrganization } from '../../organizations/authority.ts';
import { lockOrganization } from '../../organizations/store.ts';
import type { Origin } from '../../requests/origin.ts';
import { endTokens } from '../../tokens/sessions/end-tokens.ts';
import { notifyPerson } from '../inbox/notify-person.ts';
import type { OrganizationUser, UserStatus } from '../memberships/membership.ts';
import { countActiveWith, findUser, type IdentityChange, updateIdentity } from '../memberships/store.ts';
import { mayGrant, parseRoles } from './roles.ts';

export interface AdministerDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  /** Notifies all services of new revocations. */
  readonly notify: () => void;
  /** Called after the person was notified. */
  readonly notifyInboxes: () => void;
}

/** An administrative act on a user of an organisation. */
export interface UserAct {
  readonly organizationId: string;
  /** Id of the user in the organisation, or of the person. */
  readonly userId: string;
  readonly by: Caller;
  readonly origin: Origin;
}

/** Roles whose last active holder in an organisation cannot be removed. */
const requiredRoles: readonly Role[] = ['SystemAdmin', 'Administrator'];

interface Change extends IdentityChange {
  readonly type: Extract<AuditEventType, 'UserUpdatedInOrganization' | 'UserRemovedFromOrganization'>;
}

/**
 * Suspends or reactivates a user of an organisation. Other organisations of the person are not affected.
 * @throws the errors of `change`
 */
export function setUserStatus(
  deps: AdministerDeps,
  act: UserAct,
  status: Exclude<UserStatus, 'Deleted'>,
): Promise<OrganizationUser> {
  return change(deps, act, { type: 'UserUpdatedInOrganization', status });
}

/** Replaces the roles of a user; none means User. @throws UNKNOWN_ROLE, ROLE_NOT_GRANTABLE, the errors of `change` */
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

/** Removes a user from an organisation. The account stays and can be added again. @throws the errors of `change` */
export async function removeUser(deps: AdministerDeps, act: UserAct): Promise<void> {
  await change(deps, act, { type: 'UserRemovedFromOrganization', status: 'Deleted' });
}

/**
 * Changes one user while the organisation is locked, so that of two concurrent changes that would leave it without an
 * administrator one is refused. It ends the user's sessions in the organisation, because older tokens carry the old
 * roles.
 *
 * @throws FOREIGN_ORGANIZATION, ORGANIZATION_NOT_FOUND, USER_NOT_FOUND, USER_OUTRANKS, LAST_ADMINISTRATOR
 */
async function change(deps: AdministerDeps, act: UserAct, requested: Change): Promise<OrganizationUser> {
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
    const { status = user.status, roles = user.roles } = requested;
    const next = { ...user, status, roles };
    if (status === user.status && String(roles) === String(user.roles)) return { before: user, after: user };
    await requireHolders(tx, organizationId, user, next);
    await updateIdentity(tx, user.id, { status, roles });
    await record(tx, deps, { act, user, requested, organizationName: organization.name });
    return { before: user, after: next };
  });
  if (after !== before) {
    deps.notify();
    deps.notifyInboxes();
  }
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
  for (const role of requiredRoles) {
    if (!holds(before, role) || holds(after, role)) continue;
    if ((await countActiveWith(tx, organizationId, role)) <= 1) throw refusal('LAST_ADMINISTRATOR');
  }
}

interface UserChange {
  readonly act: UserAct;
  readonly user: OrganizationUser;
  readonly requested: Change;
  readonly organizationName: string;
}

async function record(
  tx: Transactor<TenantDatabase>,
  deps: AdministerDeps,
  userChange: UserChange,
): Promise<void> {
  const { act, user, requested } = userChange;
  const { type, status, roles } = requested;
  // read after the lock, so that all tokens of earlier sign-ins were issued before this instant
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
  await notify(tx, userChange, { atMs, eventId });
}

/** A suspension has no notice: a suspended user cannot read the inbox there, and the organisation states the reason. */
async function notify(
  tx: Transactor<TenantDatabase>,
  userChange: UserChange,
  { atMs, eventId }: { readonly atMs: number; readonly eventId: string },
): Promise<void> {
  const { act, user, requested, organizationName } = userChange;
  const isRemoval = requested.type === 'UserRemovedFromOrganization';
  if (!isRemoval && requested.roles === undefined) return;
  const notice = isRemoval
    ? {
        eventKey: 'org-membership-removed',
        iconKey: 'membership.removed',
        title: `You are no longer a member of ${organizationName}`,
      }
    : {
        eventKey: 'org-membership-role-changed',
        iconKey: 'membership.role-changed',
        title: `Your roles in ${organizationName} have changed`,
        summary: `Roles: ${requested.roles?.join(', ')}.`,
        detailHref: `/api/organizations/${act.organizationId}`,
      };
  await notifyPerson(tx, {
    ...notice,
    platformUserId: user.platformUserId,
    category: 'Membership',
    about: act.organizationId,
    naturalKey: eventId,
    atMs,
  });
}

import { randomUUIDv7 } from 'node:crypto';
import type { Caller } from '#core/identity/claims.ts';
import type { Role } from '#core/identity/roles.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Database, isUniqueViolation, type Transactor } from '#kit/db/db.ts';
import { appendAuditEvent } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { getOrganization, requireCallerOrganization } from '../../organizations/authority.ts';
import type { Organization } from '../../organizations/organization.ts';
import type { Origin } from '../../requests/origin.ts';
import type { PasswordPolicy } from '../../sign-in/passwords/policy.ts';
import type { Passwords } from '../../sign-in/passwords/queue.ts';
import { normalizeEmail } from '../accounts/account.ts';
import { claimAccount, setPassword } from '../accounts/store.ts';
import { notifyPerson } from '../inbox/notify-person.ts';
import type { OrganizationUser } from '../memberships/membership.ts';
import { insertIdentity } from '../memberships/store.ts';
import { mayGrant, parseRoles } from './roles.ts';

interface NewUser {
  readonly organizationId: string;
  readonly email: string;
  readonly displayName: string;
  readonly password: string;
  /** Empty means User. */
  readonly roles: readonly string[];
  readonly origin: Origin;
}

export interface CreateUserDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly passwordPolicy: PasswordPolicy;
  /** Called after a new membership, of which the person is notified. */
  readonly notifyInboxes: () => void;
}

/**
 * Adds an address to an organisation. A verified account of the address becomes a member and keeps its password.
 * Unverified accounts of other organisations are not used: this organisation gets its own account with the given
 * password, also when the user was removed from it before. The password is checked and hashed in each case and the
 * answers are alike, so that the caller does not learn whether the address has an account.
 *
 * @throws FOREIGN_ORGANIZATION, ORGANIZATION_NOT_FOUND, UNKNOWN_ROLE, ROLE_NOT_GRANTABLE, PASSWORD_REFUSED,
 * ALREADY_A_MEMBER
 */
export async function createUser(
  deps: CreateUserDeps,
  caller: Caller,
  newUser: NewUser,
): Promise<OrganizationUser> {
  requireCallerOrganization(caller, newUser.organizationId);
  const organization = await getOrganization(deps.db.read, newUser.organizationId);
  const roles = grantedRoles(caller, newUser);
  const email = normalizeEmail(newUser.email);
  const passwordHash = await hashOf(deps, newUser, organization);
  const user = { email, displayName: newUser.displayName, roles, createdAtMs: deps.clock.nowMs() };
  const ids = await deps.db
    .transact((tx) => insert(tx, user, { passwordHash, newUser, caller, organization }))
    .catch((cause: unknown) => {
      throw isUniqueViolation(cause, 'user_identities_address')
        ? refusal('ALREADY_A_MEMBER', { cause })
        : cause;
    });
  deps.notifyInboxes();
  return { ...user, ...ids, emailVerified: false, status: 'Active', lastLoginAtMs: undefined };
}

function grantedRoles(caller: Caller, newUser: NewUser): Role[] {
  const roles = parseRoles(newUser.roles);
  const inSystem = newUser.organizationId === SYSTEM_ORGANIZATION_ID;
  if (!roles.every((role) => mayGrant(caller.roles, role, inSystem))) throw refusal('ROLE_NOT_GRANTABLE');
  return roles;
}

async function hashOf(deps: CreateUserDeps, newUser: NewUser, organization: Organization): Promise<string> {
  const localPart = newUser.email.split('@')[0] ?? '';
  const words = [localPart, newUser.displayName, organization.name, organization.subdomain];
  const faults = await deps.passwordPolicy.judge(newUser.password, { words });
  if (faults.length > 0) throw refusal('PASSWORD_REFUSED', { details: { errors: { password: faults } } });
  return deps.passwords.hash(newUser.password);
}

interface Admission {
  readonly passwordHash: string;
  readonly newUser: NewUser;
  readonly caller: Caller;
  readonly organization: Organization;
}

async function insert(
  tx: Transactor<TenantDatabase>,
  user: Pick<OrganizationUser, 'displayName' | 'roles' | 'createdAtMs'> & { readonly email: string },
  admission: Admission,
): Promise<Pick<OrganizationUser, 'id' | 'platformUserId'>> {
  const { passwordHash, newUser, caller } = admission;
  const { email, displayName, createdAtMs } = user;
  const account = await claimAccount(tx, {
    id: randomUUIDv7(),
    email,
    displayName,
    passwordHash,
    emailVerified: false,
    homeOrganizationId: newUser.organizationId,
    createdAtMs,
  });
  const id = await insertIdentity(tx, {
    id: randomUUIDv7(),
    organizationId: newUser.organizationId,
    platformUserId: account.id,
    email,
    displayName,
    roles: user.roles,
    provisionedVia: 'AdminCreated',
    createdAtMs,
  });
  if (id === undefined) throw refusal('ALREADY_A_MEMBER');
  if (!account.isNew && !account.emailVerified) {
    await setPassword(tx, account.id, { hash: passwordHash, atMs: createdAtMs });
  }
  const eventId = await appendAuditEvent(tx, {
    organizationId: newUser.organizationId,
    occurredAtMs: createdAtMs,
    type: 'UserAddedToOrganization',
    identityId: id,
    platformUserId: account.id,
    origin: newUser.origin,
    success: true,
    details: { roles: user.roles, by: caller.subject },
  });
  await notifyPerson(tx, {
    platformUserId: account.id,
    category: 'Membership',
    eventKey: 'org-membership-added',
    about: newUser.organizationId,
    naturalKey: eventId,
    iconKey: 'membership.added',
    title: `You are now a member of ${admission.organization.name}`,
    summary: `Roles: ${user.roles.join(', ')}.`,
    detailHref: `/api/organizations/${newUser.organizationId}`,
    atMs: createdAtMs,
  });
  return { id, platformUserId: account.id };
}

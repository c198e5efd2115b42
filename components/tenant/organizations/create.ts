import { randomUUIDv7 } from 'node:crypto';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../audit/log/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import type { Account } from '../people/accounts/account.ts';
import { countCreatedOrganization, lockAccount } from '../people/accounts/store.ts';
import { insertIdentity } from '../people/memberships/store.ts';
import { getSettings } from '../platform/settings/store.ts';
import type { Origin } from '../requests/origin.ts';
import { isSystemAdministrator } from './authority.ts';
import { type Branding, isReservedSubdomain, type Organization } from './organization.ts';
import { insertOrganization } from './store.ts';

interface NewOrganization {
  readonly name: string;
  readonly subdomain: string;
  readonly branding: Branding;
  readonly origin: Origin;
}

export interface CreateOrganizationDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
}

/**
 * Creates an organisation whose first administrator is the caller; the caller's token keeps its organisation. A system
 * administrator with an unverified address does not become a member, because an unverified account gives access only to
 * its home organisation; it administers the new one from the System organisation.
 *
 * @throws SUBDOMAIN_RESERVED, SUBDOMAIN_CONFLICT, EMAIL_NOT_VERIFIED, ORG_LIMIT_REACHED
 */
export async function createOrganization(
  deps: CreateOrganizationDeps,
  caller: Caller,
  request: NewOrganization,
): Promise<Organization> {
  const { platformUserId } = caller;
  if (platformUserId === undefined) {
    throw new AppError('forbidden', genericCode('forbidden'), 'Only a person can create an organisation.');
  }
  if (isReservedSubdomain(request.subdomain)) throw refusal('SUBDOMAIN_RESERVED');
  const createdAtMs = deps.clock.nowMs();
  const organization = {
    id: randomUUIDv7(),
    name: request.name,
    subdomain: request.subdomain,
    status: 'Active',
    orgType: 'Standard',
    isPlatformOrg: false,
    branding: request.branding,
    createdAtMs,
  } as const;
  await deps.db.transact(async (tx) => {
    const account = await getEntitledAccount(tx, caller, platformUserId);
    await insert(tx, organization, { account, origin: request.origin });
  });
  return organization;
}

async function getEntitledAccount(
  tx: Transactor<TenantDatabase>,
  caller: Caller,
  platformUserId: string,
): Promise<Account> {
  const account = await lockAccount(tx, platformUserId);
  if (account?.isActive !== true) throw refusal('USER_NOT_FOUND');
  if (isSystemAdministrator(caller)) return account;
  if (!account.emailVerified) throw refusal('EMAIL_NOT_VERIFIED');
  if (account.createdOrganizations >= (await getSettings(tx)).maxOrgsPerUser)
    throw refusal('ORG_LIMIT_REACHED');
  return account;
}

async function insert(
  tx: Transactor<TenantDatabase>,
  organization: Organization,
  creator: { readonly account: Account; readonly origin: Origin },
): Promise<void> {
  const { account, origin } = creator;
  const identityId = account.emailVerified ? randomUUIDv7() : undefined;
  const row = { ...organization, selfRegistrationEnabled: false, creatorIdentityId: identityId };
  if (!(await insertOrganization(tx, row))) throw refusal('SUBDOMAIN_CONFLICT');
  if (identityId !== undefined) {
    await insertIdentity(tx, {
      id: identityId,
      organizationId: organization.id,
      platformUserId: account.id,
      email: account.email,
      displayName: account.displayName,
      roles: ['Administrator', 'Designer', 'User'],
      provisionedVia: 'Local',
      createdAtMs: organization.createdAtMs,
    });
  }
  await countCreatedOrganization(tx, account.id);
  await appendAudit(tx, {
    organizationId: organization.id,
    occurredAtMs: organization.createdAtMs,
    type: 'OrganizationCreated',
    identityId,
    platformUserId: account.id,
    origin,
    success: true,
    details: { subdomain: organization.subdomain },
  });
}

import type { Caller } from '#core/identity/claims.ts';
import { decide, mayActFor } from '#core/identity/policies.ts';
import type { Reader } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import type { StoredOrganization } from './organization.ts';
import { findOrganization } from './store.ts';

/** Whether the caller has a platform token of a SystemAdmin in the system organisation. */
export function isSystemAdministrator(caller: Caller): boolean {
  return decide('RequireSystemAdmin', caller) === 'allow';
}

/** @throws FOREIGN_ORGANIZATION unless the caller's token is of this organisation or of a system administrator */
export function requireCallerOrganization(caller: Caller, organizationId: string): void {
  if (!mayActFor(caller, organizationId)) throw refusal('FOREIGN_ORGANIZATION');
}

/** The organisation of a path, without an access check. @throws ORGANIZATION_NOT_FOUND, also for a deleted one */
export async function getOrganization(db: Reader<TenantDatabase>, id: string): Promise<StoredOrganization> {
  const organization = await findOrganization(db, id);
  if (organization === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
  return organization;
}

/** What a route about an organisation knows of its request. */
interface OrganizationRequest {
  readonly caller: Caller;
  readonly params: { readonly organizationId: string };
}

/**
 * `resource` of a route: the organisation of the path if the caller's token is of it or of a system administrator.
 * @throws FOREIGN_ORGANIZATION, ORGANIZATION_NOT_FOUND
 */
export function ownOrganization(
  db: () => Reader<TenantDatabase>,
): (request: OrganizationRequest) => Promise<StoredOrganization> {
  return async ({ caller, params: { organizationId } }) => {
    requireCallerOrganization(caller, organizationId);
    return getOrganization(db(), organizationId);
  };
}

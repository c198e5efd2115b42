import type { Caller } from '#core/identity/claims.ts';
import type { Reader } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { getOrganization, requireCallerOrganization } from '../../organizations/authority.ts';
import type { StoredOrganization } from '../../organizations/organization.ts';

interface TenantRequest {
  readonly caller: Caller;
  readonly params: { readonly tenantId: string };
}

/**
 * `resource` of a route of trust administration: the organisation of the path if the caller's token is of it or of a
 * system administrator.
 * @throws FOREIGN_ORGANIZATION, ORGANIZATION_NOT_FOUND
 */
export function administeredTenant(
  db: () => Reader<TenantDatabase>,
): (request: TenantRequest) => Promise<StoredOrganization> {
  return async ({ caller, params: { tenantId } }) => {
    requireCallerOrganization(caller, tenantId);
    return getOrganization(db(), tenantId);
  };
}

import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { deletedGraceMs, type StoredOrganization } from '../organization.ts';

/** An organisation as the operator sees it. */
export interface ManagedOrganization extends StoredOrganization {
  readonly userCount: number;
}

export const organizationStates = ['Active', 'Suspended', 'Terminating'] as const;
type OrganizationState = (typeof organizationStates)[number];

/** A deleted organisation is Terminating and cannot be restored. */
export function stateOf(organization: StoredOrganization): OrganizationState {
  return organization.deletedAtMs === undefined ? organization.status : 'Terminating';
}

/** Whether a resource that names the organisation may adopt it. */
export function isAdoptable(organization: StoredOrganization): boolean {
  const { isPlatformOrg, deletedAtMs, resourceUid } = organization;
  return !isPlatformOrg && deletedAtMs === undefined && resourceUid === undefined;
}

export function presentManaged(organization: ManagedOrganization) {
  const { deletedAtMs } = organization;
  return {
    organizationId: organization.id,
    resourceUid: organization.resourceUid ?? null,
    state: stateOf(organization),
    name: organization.name,
    subdomain: organization.subdomain,
    organizationType: organization.orgType,
    isPlatformOrganization: organization.isPlatformOrg,
    branding: organization.branding,
    userCount: organization.userCount,
    version: organization.version,
    createdAt: apiTimestamp(organization.createdAtMs),
    deletedAt: deletedAtMs === undefined ? null : apiTimestamp(deletedAtMs),
    purgedAfter: deletedAtMs === undefined ? null : apiTimestamp(deletedAtMs + deletedGraceMs),
  };
}

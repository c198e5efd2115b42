import type { StoredOrganization } from '../organization.ts';

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

/** Ids that every installation starts with. */
export const SYSTEM_ORGANIZATION_ID = '00000000-0000-0000-0000-000000000001';
export const PUBLIC_ORGANIZATION_ID = '00000000-0000-0000-0000-000000000002';
export const DEFAULT_ADMIN_ID = '00000000-0000-0000-0001-000000000001';

/** `client_id` of tokens that people hold. */
export const FIRST_PARTY_CLIENT_ID = 'first-party';

/** The name an installation may have; it is also the SPIFFE trust domain. */
export const INSTALLATION_NAME = /^[a-z0-9][a-z0-9-]{1,62}$/;

/** The SPIFFE id of a workload (specification document 1, section 5). */
export function serviceSpiffeUri(installation: string, clientId: string): string {
  return `spiffe://${installation}/service/${clientId}`;
}

/** Ids that every installation has from its first start. */
export const SYSTEM_ORGANIZATION_ID = '00000000-0000-0000-0000-000000000001';
export const PUBLIC_ORGANIZATION_ID = '00000000-0000-0000-0000-000000000002';
export const DEFAULT_ADMIN_ID = '00000000-0000-0000-0001-000000000001';

/** `client_id` of tokens that people hold. */
export const FIRST_PARTY_CLIENT_ID = 'first-party';

/**
 * Form of an installation's name: a SPIFFE trust domain (SPIFFE ID, section "Trust Domain") of at most 63 characters,
 * the length of a Kubernetes label, without underscores. Dots are part of it: the chart's default is
 * `RELEASE.chancery.local`.
 */
export const INSTALLATION_NAME = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/;

import type { Reader } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { publicOrganizationClosed, refusal } from '../errors.ts';
import type { Organization } from './organization.ts';
import { findRegistrationTarget } from './store.ts';

/**
 * The Public organisation, for people who sign up there.
 * @throws PUBLIC_ORG_DISABLED, REGISTRATION_CLOSED when it takes none
 */
export async function requirePublicOrganization(db: Reader<TenantDatabase>): Promise<Organization> {
  const found = await findRegistrationTarget(db, 'public');
  if (found?.organization.status !== 'Active') throw publicOrganizationClosed();
  if (!found.takesRegistrations) throw refusal('REGISTRATION_CLOSED');
  return found.organization;
}

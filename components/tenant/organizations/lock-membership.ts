import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import type { Membership } from '../people/memberships/membership.ts';
import { findMembership } from '../people/memberships/store.ts';
import { lockOpenOrganization } from './store.ts';

/**
 * Reads a membership while its organisation is locked: until the transaction ends neither is suspended and no role
 * changes, so that tokens issued meanwhile are older than a later revocation. Undefined when the membership is not
 * active.
 */
export async function lockMembership(
  tx: Transactor<TenantDatabase>,
  { identityId, organizationId }: Pick<Membership, 'identityId' | 'organizationId'>,
): Promise<Membership | undefined> {
  if (!(await lockOpenOrganization(tx, organizationId))) return undefined;
  // read again, because a concurrent transaction may have changed the membership before the lock
  const membership = await findMembership(tx, identityId);
  return membership?.isActive === true ? membership : undefined;
}

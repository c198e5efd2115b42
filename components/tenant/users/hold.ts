import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { holdOpenOrganization } from '../organizations/store.ts';
import type { Membership } from './account.ts';
import { findMembership } from './store.ts';

/**
 * A membership as it is while its organisation is held: until the transaction ends neither is suspended and no role changes, so
 * that tokens issued meanwhile are older than what ends them. Undefined when it is not open.
 */
export async function holdMembership(
  tx: Transactor<TenantDatabase>,
  { identityId, organizationId }: Pick<Membership, 'identityId' | 'organizationId'>,
): Promise<Membership | undefined> {
  if (!(await holdOpenOrganization(tx, organizationId))) return undefined;
  // read again: somebody may have held the organisation to change it
  const membership = await findMembership(tx, identityId);
  return membership?.isActive === true ? membership : undefined;
}

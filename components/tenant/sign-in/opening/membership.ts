import type { Account } from '../../people/accounts/account.ts';
import type { Membership } from '../../people/memberships/membership.ts';

/**
 * The organisation of a sign-in: the named one, else the last used one, else the oldest Standard membership, else a
 * Public one. Undefined when the account has access to none.
 */
export function chooseMembership(
  account: Pick<Account, 'defaultOrganizationId'>,
  memberships: readonly Membership[],
  subdomain: string | undefined,
): Membership | undefined {
  const open = memberships.filter((one) => one.isActive);
  if (subdomain !== undefined) {
    const requested = subdomain.trim().toLowerCase();
    return open.find((one) => one.organizationSubdomain === requested);
  }
  const oldestFirst = open.toSorted((a, b) => a.createdAtMs - b.createdAtMs);
  return (
    oldestFirst.find((one) => one.organizationId === account.defaultOrganizationId) ??
    oldestFirst.find((one) => one.orgType === 'Standard') ??
    oldestFirst[0]
  );
}

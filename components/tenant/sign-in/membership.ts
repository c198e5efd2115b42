import type { Account, Membership } from '../users/account.ts';

/**
 * The organisation a sign-in goes to: the named one, else the last one used, else the oldest Standard membership, else
 * a Public one. Undefined when there is none that is open to the account.
 */
export function chooseMembership(
  account: Pick<Account, 'defaultOrganizationId'>,
  memberships: readonly Membership[],
  subdomain: string | undefined,
): Membership | undefined {
  const open = memberships.filter((one) => one.isActive);
  if (subdomain !== undefined) {
    const wanted = subdomain.trim().toLowerCase();
    return open.find((one) => one.organizationSubdomain === wanted);
  }
  const oldestFirst = open.toSorted((a, b) => a.createdAtMs - b.createdAtMs);
  return (
    oldestFirst.find((one) => one.organizationId === account.defaultOrganizationId) ??
    oldestFirst.find((one) => one.orgType === 'Standard') ??
    oldestFirst[0]
  );
}

import type { Reader } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { type Account, normalizeEmail } from '../people/accounts/account.ts';
import { findAddressedAccount } from '../people/accounts/store.ts';

interface AddressedAccount {
  readonly email: string;
  readonly organizationSubdomain?: string | undefined;
}

/**
 * The account whose password an attempt is checked against. Undefined for an unknown address and, without a subdomain,
 * for an address with unverified accounts in several organisations, because none of them proves who owns the address.
 */
export function findAccount(
  db: Reader<TenantDatabase>,
  { email, organizationSubdomain }: AddressedAccount,
): Promise<Account | undefined> {
  return findAddressedAccount(db, normalizeEmail(email), organizationSubdomain?.trim().toLowerCase());
}

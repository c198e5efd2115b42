import type { Reader } from '#kit/db/db.ts';
import { findAddressedAccount } from '../accounts/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { type Account, normalizeEmail } from '../users/account.ts';

export interface AddressedAccount {
  readonly email: string;
  readonly organizationSubdomain?: string | undefined;
}

/**
 * The account whose password an attempt is judged by. Undefined for an unknown address and also, without a subdomain, for
 * one that several organisations have made unverified accounts of: none of them says whose address it is.
 */
export function findAccount(
  db: Reader<TenantDatabase>,
  { email, organizationSubdomain }: AddressedAccount,
): Promise<Account | undefined> {
  return findAddressedAccount(db, normalizeEmail(email), organizationSubdomain?.trim().toLowerCase());
}

/** A person: across all organisations when the address is verified, else only in the organisation that created it. */
export interface Account {
  readonly id: string;
  /** Absent for an account that signed up with a passkey alone. */
  readonly email: string | undefined;
  readonly displayName: string;
  readonly passwordHash: string | undefined;
  /** The password was given by others, and its owner has to replace it. */
  readonly passwordChangeRequired: boolean;
  readonly emailVerified: boolean;
  readonly createdAtMs: number;
  readonly createdOrganizations: number;
  readonly isActive: boolean;
  readonly defaultOrganizationId: string | undefined;
  /** The organisation that created the account. Without it an unverified account gives access to none. */
  readonly homeOrganizationId: string | undefined;
}

export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase();
}

import type { Role } from '#core/identity/roles.ts';
import type { OrganizationType } from '#core/identity/tiers.ts';

/** A person in one organisation; the subject of tokens. */
export interface Membership {
  readonly identityId: string;
  readonly platformUserId: string;
  readonly organizationId: string;
  readonly organizationName: string;
  readonly organizationSubdomain: string;
  readonly orgType: OrganizationType;
  /** Identity, person and organisation are Active. */
  readonly isActive: boolean;
  /** Absent for a person who signed up with a passkey alone. */
  readonly email: string | undefined;
  readonly displayName: string;
  readonly roles: readonly Role[];
  /** The person's oldest active wallet according to the consumed wallet events; a hint that may lag behind. */
  readonly walletAddress: string | undefined;
  /** False: the identity provider of the organisation does not say who the person is. */
  readonly profileCompleted: boolean;
  /** The password was given by others, and the person has to replace it. */
  readonly passwordChangeRequired: boolean;
  readonly createdAtMs: number;
  /** When the person last signed in to this organisation. */
  readonly lastLoginAtMs: number | undefined;
}

export type UserStatus = 'Active' | 'Suspended' | 'Deleted';

/** A user in the list of an organisation. */
export interface OrganizationUser {
  readonly id: string;
  readonly platformUserId: string;
  /** Absent for a person who signed up with a passkey alone. */
  readonly email: string | undefined;
  readonly displayName: string;
  /**
   * The address is verified, and the organisation may learn it, because it created the account or the person has signed
   * in to it. Otherwise adding an address would reveal whether it has an account elsewhere.
   */
  readonly emailVerified: boolean;
  readonly roles: readonly Role[];
  readonly status: UserStatus;
  readonly createdAtMs: number;
  readonly lastLoginAtMs: number | undefined;
}

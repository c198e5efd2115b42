import { audiencesOf, type HumanTier, issuerOf, type Tier } from '#core/identity/tiers.ts';
import { FIRST_PARTY_CLIENT_ID } from '#core/identity/well-known.ts';
import type { Strength } from './strength.ts';

export const userTokenLifetimeSeconds = 3600;
export const delegatedTokenLifetimeSeconds = 300;
/** Idle and absolute lifetime of a refresh family, counted from the sign-in (NIST SP 800-63B-4, AAL2). */
export const refreshLifetimeSeconds = 86_400;

/** Identifier and times of a token, in epoch seconds. */
export interface TokenFrame {
  readonly issuedAt: number;
  readonly notBefore: number;
  readonly lifetimeSeconds: number;
  readonly tokenId: string;
}

export interface UserSubject {
  readonly identityId: string;
  readonly platformUserId: string;
  readonly organizationId: string;
  readonly organizationName: string;
  /** Absent for an account that signed up with a passkey alone. */
  readonly email: string | undefined;
  readonly emailVerified: boolean;
  readonly displayName: string;
  readonly roles: readonly string[];
  /** False: the token is restricted until the person says who they are. */
  readonly profileCompleted: boolean;
  /** The token is restricted until the person replaces the password. */
  readonly passwordChangeRequired: boolean;
  /** The person's oldest active wallet, if known. */
  readonly walletAddress?: string | undefined;
}

export interface UserGrant {
  readonly tier: HumanTier;
  readonly familyId: string;
  /** Authentication methods by RFC 8176; informative. */
  readonly amr: readonly string[];
  /** From the authentication times stored in the refresh family. */
  readonly acr: Strength;
  /** Epoch seconds of the sign-in. */
  readonly authTime: number;
}

export interface ServiceSubject {
  readonly principalId: string;
  readonly clientId: string;
  readonly serviceName: string;
  readonly canSignSystem: boolean;
}

/** The person that a service's token acts for. */
export interface Delegation {
  readonly userId: string;
  readonly platformUserId: string;
  readonly organizationId: string;
  /** Empty when the person's own token carries none. */
  readonly roles: readonly string[];
  /** Family of the person's own token, whose end also ends the delegated token. */
  readonly familyId?: string | undefined;
}

export type TokenClaims = Readonly<Record<string, unknown>>;

/** Claims of a person's access token. Only the platform tier carries roles and the wallet. */
export function userClaims(
  installation: string,
  frame: TokenFrame,
  subject: UserSubject,
  grant: UserGrant,
): TokenClaims {
  return {
    ...framed(installation, frame, grant.tier),
    sub: subject.identityId,
    platform_user_id: subject.platformUserId,
    org_id: subject.organizationId,
    org_name: subject.organizationName,
    ...(subject.email === undefined ? {} : { email: subject.email, email_verified: subject.emailVerified }),
    name: subject.displayName,
    ...(grant.tier === 'platform' ? platformClaims(subject) : {}),
    ...(subject.profileCompleted ? {} : { profile_completed: false }),
    ...(subject.passwordChangeRequired ? { password_change_required: true } : {}),
    token_type: 'user',
    token_use: 'access',
    tier: grant.tier,
    client_id: FIRST_PARTY_CLIENT_ID,
    auth_time: grant.authTime,
    amr: [...grant.amr],
    acr: grant.acr,
    sid: grant.familyId,
  };
}

function platformClaims({ roles, walletAddress }: UserSubject): TokenClaims {
  return { roles: [...roles], ...(walletAddress === undefined ? {} : { wallet_address: walletAddress }) };
}

/** Claims of a service's access token; the subject is the service, also with a delegation. */
export function serviceClaims(
  installation: string,
  frame: TokenFrame,
  subject: ServiceSubject,
  grant: { readonly scopes: readonly string[]; readonly delegation?: Delegation | undefined },
): TokenClaims {
  const { delegation } = grant;
  return {
    ...framed(installation, frame, 'service'),
    sub: subject.principalId,
    token_type: 'service',
    token_use: 'access',
    tier: 'service',
    client_id: subject.clientId,
    service_name: subject.serviceName,
    scope: grant.scopes.join(' '),
    ...(subject.canSignSystem ? { can_sign_system: true } : {}),
    ...(delegation ? delegatedClaims(delegation) : {}),
  };
}

function delegatedClaims(delegation: Delegation): TokenClaims {
  const { userId, platformUserId, organizationId, roles, familyId } = delegation;
  return {
    delegated_user_id: userId,
    delegated_platform_user_id: platformUserId,
    delegated_org_id: organizationId,
    delegated_roles: [...roles],
    ...(familyId === undefined ? {} : { delegated_sid: familyId }),
  };
}

function framed(installation: string, frame: TokenFrame, tier: Tier): Record<string, unknown> {
  return {
    iss: issuerOf(installation),
    aud: audiencesOf(installation, tier),
    iat: frame.issuedAt,
    nbf: frame.notBefore,
    exp: frame.notBefore + frame.lifetimeSeconds,
    jti: frame.tokenId,
  };
}

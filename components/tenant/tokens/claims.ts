import { audiencesOf, type HumanTier, issuerOf, type Tier } from '#core/identity/tiers.ts';
import { FIRST_PARTY_CLIENT_ID } from '#core/identity/well-known.ts';
import type { Strength } from './strength.ts';

export const userTokenLifetimeSeconds = 3600;
export const delegatedTokenLifetimeSeconds = 300;
/** Refresh families: idle and absolute end, counted from the sign-in (NIST 800-63B-4, AAL2). */
export const refreshLifetimeSeconds = 86_400;

/** Times of one token in epoch seconds, and its identifier. */
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
  readonly email: string;
  readonly emailVerified: boolean;
  readonly displayName: string;
  readonly roles: readonly string[];
  /** The person's oldest active wallet when one is known. */
  readonly walletAddress?: string | undefined;
}

export interface UserGrant {
  readonly tier: HumanTier;
  readonly familyId: string;
  /** RFC 8176 names of the means; informative. */
  readonly amr: readonly string[];
  /** By what the server stamped on the refresh family. */
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

export interface Delegation {
  readonly userId: string;
  readonly organizationId?: string | undefined;
}

export type TokenClaims = Readonly<Record<string, unknown>>;

/** Claims of a person's access token. Roles and the wallet travel with the platform tier only. */
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
    email: subject.email,
    email_verified: subject.emailVerified,
    name: subject.displayName,
    ...(grant.tier === 'platform' ? platformClaims(subject) : {}),
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

/** Claims of a service's access token; with a delegation the subject stays the service. */
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
    ...(delegation ? { delegated_user_id: delegation.userId } : {}),
    ...(delegation?.organizationId ? { delegated_org_id: delegation.organizationId } : {}),
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

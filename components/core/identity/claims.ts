import { z } from 'zod';
import { AppError } from '../errors/errors.ts';
import { isRole, type Role } from './roles.ts';
import { parseScopeClaim } from './scopes.ts';
import { audienceOf, issuerOf, TIERS, type Tier } from './tiers.ts';

const texts = z.union([z.string(), z.array(z.string())]);
const asList = (value: string | readonly string[]): string[] =>
  typeof value === 'string' ? [value] : [...value];

/** Claims of an access token. Times are seconds since the epoch. Unknown claims are kept. */
const accessClaimsSchema = z.looseObject({
  iss: z.string().min(1),
  aud: texts.transform(asList),
  sub: z.string().min(1),
  iat: z.int(),
  nbf: z.int().optional(),
  exp: z.int(),
  jti: z.string().min(1),
  token_type: z.enum(['user', 'service']),
  token_use: z.literal('access'),
  tier: z.enum(TIERS),
  client_id: z.string().min(1),
  platform_user_id: z.string().optional(),
  org_id: z.string().optional(),
  org_name: z.string().optional(),
  email: z.string().optional(),
  email_verified: z.boolean().optional(),
  name: z.string().optional(),
  roles: texts.transform(asList).optional(),
  wallet_address: z.string().optional(),
  service_name: z.string().optional(),
  scope: texts.optional(),
  can_sign_system: z.boolean().optional(),
  can_publish_blueprint: z.boolean().optional(),
  delegated_user_id: z.string().optional(),
  delegated_org_id: z.string().optional(),
  delegated_platform_user_id: z.string().optional(),
  delegated_roles: texts.transform(asList).optional(),
  delegated_sid: z.string().optional(),
  auth_time: z.int().optional(),
  amr: z.array(z.string()).optional(),
  acr: z.string().optional(),
  sid: z.string().optional(),
  password_change_required: z.boolean().optional(),
  profile_completed: z.boolean().optional(),
});

export type AccessClaims = z.output<typeof accessClaimsSchema>;

/**
 * The person for whom a delegated service token acts. The token gives the service no authority over what belongs to the
 * person; a service that judges the person does so from these facts, and only over the delegated service's own
 * connection.
 */
interface Delegation {
  /** User identity. */
  readonly userId: string;
  /** Absent in tokens of earlier releases. */
  readonly platformUserId: string | undefined;
  readonly organizationId: string | undefined;
  /** Those of the person's own token: none of the consumer tier. */
  readonly roles: readonly Role[];
  /** Id of the session that the person's token belongs to; absent when the service named the person by id. */
  readonly sessionId: string | undefined;
}

/**
 * What a person has to do first; until then only routes that admit the restriction accept the token. `profile`: say who
 * they are, since the identity provider of their organisation does not. `password`: replace a password that others
 * know; reading is allowed.
 */
export type Restriction = 'profile' | 'password';

/** The caller that a verified access token describes. */
export interface Caller {
  readonly kind: 'user' | 'service';
  /** User identity of a person, principal of a service. */
  readonly subject: string;
  readonly platformUserId?: string | undefined;
  readonly organizationId?: string | undefined;
  readonly roles: readonly Role[];
  readonly tier: Tier;
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** A hint only: the wallet service decides which wallets the caller may sign with. */
  readonly walletAddress?: string | undefined;
  /** Id of the session, which is the family of its refresh tokens. */
  readonly sessionId?: string | undefined;
  readonly tokenId: string;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  /** Whether the token may use the signing component. */
  readonly canSignSystem: boolean;
  /** Absent where the token is accepted everywhere. */
  readonly restriction?: Restriction | undefined;
  /** Present in a delegated service token. */
  readonly delegation?: Delegation | undefined;
  readonly claims: AccessClaims;
}

function refuse(reason: string): never {
  throw new AppError('unauthenticated', 'UNAUTHORIZED', `Token refused: ${reason}`);
}

/**
 * Parses the claims of a token whose signature is verified.
 * @throws AppError unauthenticated UNAUTHORIZED when they are not those of an access token
 */
export function parseAccessClaims(payload: unknown): AccessClaims {
  const result = accessClaimsSchema.safeParse(payload);
  if (!result.success) return refuse('claims are not those of an access token');
  const { tier, token_type: type, roles } = result.data;
  if ((tier === 'service') !== (type === 'service')) refuse('tier and token_type disagree');
  if (tier !== 'platform' && roles !== undefined) refuse('only the platform tier carries roles');
  if (tier === 'platform' && (roles === undefined || roles.length === 0)) refuse('roles are missing');
  return result.data;
}

/**
 * Builds the caller from verified claims. Issuer and audience must be those of this installation and of the claimed
 * tier. Times are judged where the signature is verified.
 * @throws AppError unauthenticated UNAUTHORIZED
 */
export function callerOf(claims: AccessClaims, installation: string): Caller {
  if (claims.iss !== issuerOf(installation)) refuse('another issuer');
  const expected = audienceOf(installation, claims.tier);
  const others = TIERS.filter((tier) => tier !== claims.tier).map((tier) => audienceOf(installation, tier));
  if (!claims.aud.includes(expected) || claims.aud.some((each) => others.includes(each)))
    refuse('another audience');
  const service = claims.tier === 'service';
  return {
    kind: service ? 'service' : 'user',
    subject: claims.sub,
    platformUserId: service ? undefined : claims.platform_user_id,
    organizationId: claims.org_id,
    roles: claims.tier === 'platform' ? (claims.roles ?? []).filter(isRole) : [],
    tier: claims.tier,
    clientId: claims.client_id,
    scopes: service ? parseScopeClaim(claims.scope) : [],
    walletAddress: service ? undefined : claims.wallet_address,
    sessionId: claims.sid,
    tokenId: claims.jti,
    issuedAtMs: claims.iat * 1000,
    expiresAtMs: claims.exp * 1000,
    canSignSystem: service && claims.can_sign_system === true,
    restriction: restrictionOf(claims),
    delegation: service ? delegationOf(claims) : undefined,
    claims,
  };
}

function restrictionOf(claims: AccessClaims): Restriction | undefined {
  if (claims.profile_completed === false) return 'profile';
  return claims.password_change_required === true ? 'password' : undefined;
}

function delegationOf(claims: AccessClaims): Delegation | undefined {
  if (claims.delegated_user_id === undefined) return undefined;
  return {
    userId: claims.delegated_user_id,
    platformUserId: claims.delegated_platform_user_id,
    organizationId: claims.delegated_org_id,
    roles: (claims.delegated_roles ?? []).filter(isRole),
    sessionId: claims.delegated_sid,
  };
}

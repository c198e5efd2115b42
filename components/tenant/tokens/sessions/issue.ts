import { randomUUID } from 'node:crypto';
import type { Clock } from '#kit/clock/clock.ts';
import {
  type Delegation,
  delegatedTokenLifetimeSeconds,
  type ServiceSubject,
  serviceClaims,
  type TokenFrame,
  type UserGrant,
  type UserSubject,
  userClaims,
  userTokenLifetimeSeconds,
} from '../claims/claims.ts';
import { type SigningKey, signToken } from '../keys/jwt.ts';

/** An access token and its lifetime in seconds. */
interface IssuedToken {
  readonly accessToken: string;
  readonly expiresIn: number;
}

export interface ServiceGrant {
  readonly scopes: readonly string[];
  readonly delegation?: Delegation | undefined;
}

/** All access tokens are created here. */
export interface TokenIssuer {
  /** `revokedBeforeMs`: tokens issued up to this time are revoked, so the token gets a later issue time. */
  forUser(subject: UserSubject, grant: UserGrant, revokedBeforeMs?: number): IssuedToken;
  forService(subject: ServiceSubject, grant: ServiceGrant): IssuedToken;
}

interface TokenIssuerOptions {
  readonly installation: string;
  readonly clock: Clock;
  readonly signingKey: () => SigningKey;
  readonly serviceLifetimeSeconds: number;
  /** Whether a password that others know restricts its owner's tokens. */
  readonly enforcesPasswordChange: boolean;
}

export function createTokenIssuer(options: TokenIssuerOptions): TokenIssuer {
  const { installation } = options;
  const frame = (lifetimeSeconds: number, revokedBeforeMs = -1): TokenFrame => {
    const notBefore = Math.floor(options.clock.nowMs() / 1000);
    const firstAlive = Math.floor(revokedBeforeMs / 1000) + 1;
    return { notBefore, issuedAt: Math.max(notBefore, firstAlive), lifetimeSeconds, tokenId: randomUUID() };
  };
  return {
    forUser(person, grant, revokedBeforeMs) {
      const expiresIn = userTokenLifetimeSeconds;
      const passwordChangeRequired = options.enforcesPasswordChange && person.passwordChangeRequired;
      const subject = { ...person, passwordChangeRequired };
      const claims = userClaims(installation, frame(expiresIn, revokedBeforeMs), subject, grant);
      return { accessToken: signToken(options.signingKey(), claims), expiresIn };
    },
    forService(subject, grant) {
      const expiresIn = grant.delegation ? delegatedTokenLifetimeSeconds : options.serviceLifetimeSeconds;
      const claims = serviceClaims(installation, frame(expiresIn), subject, grant);
      return { accessToken: signToken(options.signingKey(), claims), expiresIn };
    },
  };
}

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** A service that may hold tokens. */
export interface Principal {
  readonly principalId: string;
  readonly clientId: string;
  readonly serviceName: string;
  readonly secretHash: Buffer | undefined;
  readonly scopes: readonly string[];
  readonly canSignSystem: boolean;
  readonly isActive: boolean;
}

export const principalStatuses = ['Active', 'Suspended', 'Revoked'] as const;
export type PrincipalStatus = (typeof principalStatuses)[number];

/** A principal as it is stored, also one that may hold no tokens. */
export interface StoredPrincipal extends Principal {
  readonly status: PrincipalStatus;
}

/** Secrets are 256 random bits: one SHA-256 is enough, and a slow hash would only be a way to exhaust us. */
export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

export function makeSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** False in the same time for a wrong secret, a principal without one and no principal at all. */
export function secretMatches(principal: Principal | undefined, secret: string): boolean {
  const stored = principal?.secretHash;
  const equal = timingSafeEqual(hashSecret(secret), stored ?? Buffer.alloc(32));
  return equal && stored !== undefined;
}

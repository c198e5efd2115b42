import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** A service that may get tokens. */
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
type PrincipalStatus = (typeof principalStatuses)[number];

/** A stored principal; a revoked one gets no tokens. */
export interface StoredPrincipal extends Principal {
  readonly status: PrincipalStatus;
}

/** Secrets have 256 random bits, so one SHA-256 is sufficient; a slow hash would only help denial of service. */
export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

export function makeSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Takes the same time for a wrong secret, a principal without a secret and an unknown principal. */
export function secretMatches(principal: Principal | undefined, secret: string): boolean {
  const stored = principal?.secretHash;
  const equal = timingSafeEqual(hashSecret(secret), stored ?? Buffer.alloc(32));
  return equal && stored !== undefined;
}

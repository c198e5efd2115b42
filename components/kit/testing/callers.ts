import { randomUUID } from 'node:crypto';
import type { Caller } from '#core/identity/claims.ts';

/** A person with a token of an hour from a time on, in no organisation and without roles; members replace those. */
export function testCaller(issuedAtMs: number, change: Partial<Caller> = {}): Caller {
  return {
    kind: 'user',
    subject: randomUUID(),
    platformUserId: randomUUID(),
    organizationId: undefined,
    roles: [],
    tier: 'platform',
    clientId: 'first-party',
    scopes: [],
    tokenId: randomUUID(),
    issuedAtMs,
    expiresAtMs: issuedAtMs + 3_600_000,
    canSignSystem: false,
    claims: {
      iss: 'urn:platform:test',
      aud: [],
      sub: 'test',
      iat: 0,
      exp: 0,
      jti: 'test',
      token_type: 'user',
      token_use: 'access',
      tier: 'platform',
      client_id: 'first-party',
    },
    ...change,
  };
}

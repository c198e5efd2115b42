import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import type { Api } from './api.ts';

/** Result of the verification of an access token. */
export interface VerifiedToken {
  readonly algorithm: string;
  readonly keyId: string;
  readonly issuer: string;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** Verifies an access token against the published keys with jose, which the product does not use for signing. */
export async function verifyAccessToken(
  api: Api,
  token: string,
  installation: string,
): Promise<VerifiedToken> {
  const { body } = await api.expect(200, 'GET', '/.well-known/jwks.json');
  const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(body as JSONWebKeySet), {
    issuer: `urn:platform:${installation}`,
    audience: `${installation}:platform`,
    typ: 'at+jwt',
    algorithms: ['ES256'],
  });
  return {
    algorithm: protectedHeader.alg,
    keyId: protectedHeader.kid ?? '',
    issuer: payload.iss ?? '',
    claims: payload,
  };
}

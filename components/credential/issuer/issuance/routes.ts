import { CompactEncrypt, importJWK } from 'jose';
import { z } from 'zod';
import { type App, addRoute, answer, json, jsonText } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { walletRoute } from '../../protocol/route.ts';
import { authoriseWallet } from './authorise.ts';
import { type IssueDeps, issueCredentials } from './issue.ts';
import { credentialRequestSchema, type EncryptionRequest, readCredentialRequest } from './request.ts';

export interface IssuanceRouteDeps extends IssueDeps {
  readonly log: Logger;
}

const text = z.string();

const issuedSchema = z
  .object({
    credentials: z.array(
      z.object({ credential: text.describe('Compact SD-JWT VC, bound to the key of a proof.') }),
    ),
  })
  .meta({ id: 'IssuedCredentials' });

const issued = {
  ...json('One credential for each proof; a JWE of this where the request asks for one.', issuedSchema),
  otherTypes: { 'application/jwt': text },
};

const example = {
  credential_configuration_id: 'site-permit',
  proofs: { jwt: ['eyJ0eXAiOiJvcGVuaWQ0dmNpLXByb29mK2p3dCJ9.e30.c2ln'] },
};

/** Mounts the credential endpoint of wallets (OpenID4VCI 1.0, section 8). */
export function mountIssuanceRoutes(app: App, deps: IssuanceRouteDeps): void {
  addRoute(app, {
    ...walletRoute(() => deps.log),
    method: 'POST',
    path: '/credential',
    operationId: 'issueCredential',
    tag: 'Credential exchange',
    summary: 'Credentials for the keys of a wallet',
    description:
      'With the access token of `/token`, as Bearer, or as DPoP with a proof where it is bound to a key.',
    policy: 'Anonymous',
    headers: z.object({ dpop: text.optional() }),
    body: { schema: credentialRequestSchema, example },
    bodyLimitBytes: 131_072,
    answers: { 200: issued },
    handle: async ({ request }) => {
      const authorised = await authoriseWallet(deps, request.headers);
      const asked = readCredentialRequest(request.body);
      const encrypt = await encryptionOf(asked.encryption);
      const credentials = await issueCredentials(deps, authorised, asked);
      const body = { credentials: credentials.map((credential) => ({ credential })) };
      if (encrypt === undefined) return answer(200, body);
      return answer(200, jsonText(await encrypt(body)), { 'content-type': 'application/jwt' });
    },
  });
}

/**
 * Encrypts the answer to the key of a request; undefined where it asks for none. Read before anything is issued.
 * @throws ProtocolError invalid_encryption_parameters for a key that is none
 */
async function encryptionOf(
  request: EncryptionRequest | undefined,
): Promise<((body: object) => Promise<string>) | undefined> {
  if (request === undefined) return undefined;
  const { kty, crv, x, y, kid } = request.jwk;
  const key = await importJWK({ kty, crv, x, y }, 'ECDH-ES').catch((cause: unknown) => {
    throw new ProtocolError('invalid_encryption_parameters', 'jwk is no public key of P-256', { cause });
  });
  const header = { alg: 'ECDH-ES', enc: request.enc, ...(kid !== undefined && { kid }) };
  return (body) =>
    new CompactEncrypt(Buffer.from(JSON.stringify(body))).setProtectedHeader(header).encrypt(key);
}

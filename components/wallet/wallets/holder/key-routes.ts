import { z } from 'zod';
import { encodeBase64, encodeBase64Url } from '#core/encoding/base64.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusals } from '../../errors.ts';
import { getHolderKey, type HolderKeyDeps, holderJwk, signKeyBinding } from './holder-key.ts';

const route = { tag: 'Holder', policy: 'RequireConsumerAudience' } as const;
const ofHolderKey = refusals('WALLET_NOT_FOUND', 'PERSON_REQUIRED');

const holderKeysSchema = z.object({
  holderJwk: z
    .object({ kty: z.string(), crv: z.string(), x: z.string(), y: z.string().optional(), alg: z.string() })
    .describe('Public JWK that credentials are bound to; `alg` is ES256 or EdDSA.'),
  encryptionPublicKey: z
    .string()
    .describe('Base64 of the public key of the wallet: 32 bytes for Ed25519, SPKI DER for P-256.'),
  algorithm: z.string().describe('Algorithm of encryptionPublicKey: ED25519 or NISTP256.'),
  walletAddress: z.string(),
});

const signBody = z.object({
  signingInput: z
    .string()
    .max(8_192)
    .describe(
      'base64url(header).base64url(payload) of a key-binding JWT. The header has typ kb+jwt, the alg of the holder ' +
        'key and no crit; the payload has nonce, aud, sd_hash and an iat within 300 s of now.',
    ),
});

const exampleInput = [
  { typ: 'kb+jwt', alg: 'EdDSA' },
  { nonce: 'n-0S6', aud: 'https://verifier.example', sd_hash: '47DEQpj8HBSa', iat: 1_795_000_000 },
]
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .join('.');

/**
 * The keys by which the caller holds credentials: of their oldest wallet that derives keys (ED25519 or NISTP256), which
 * no request names.
 */
export function mountHolderKeyRoutes(app: App, deps: HolderKeyDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/v1/wallet/holder-keys',
    operationId: 'getHolderKeys',
    summary: "The public keys of the caller's wallet for credentials and encryption",
    rateLimit: 'Api',
    answers: { 200: json('The keys.', holderKeysSchema) },
    refusals: ofHolderKey,
    handle: async ({ caller }) => {
      const key = await getHolderKey(deps, caller);
      const { keyType, publicKey, address } = key.wallet;
      return {
        holderJwk: holderJwk(key),
        encryptionPublicKey: encodeBase64(publicKey),
        algorithm: keyType,
        walletAddress: address,
      };
    },
  });

  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/v1/wallet/presentations/sign-kb',
    operationId: 'signKeyBinding',
    summary: 'Sign a key-binding JWT with the holder key',
    rateLimit: 'Strict',
    body: { schema: signBody, example: { signingInput: exampleInput } },
    answers: {
      200: json('The signature.', z.object({ signature: z.string(), algorithm: z.enum(['ES256', 'EdDSA']) })),
    },
    refusals: [
      ...ofHolderKey,
      ...refusals('KB_HEADER_INVALID', 'KB_ALG_MISMATCH', 'KB_PAYLOAD_INVALID', 'WALLET_LOCKED'),
    ],
    noStore: true,
    handle: async ({ caller, body }) => {
      const { signature, algorithm } = await signKeyBinding(deps, caller, body.signingInput);
      return { signature: encodeBase64Url(signature), algorithm };
    },
  });
}

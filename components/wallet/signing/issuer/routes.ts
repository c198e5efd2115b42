import { z } from 'zod';
import { decodeBase64Any, encodeBase64 } from '#core/encoding/base64.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusal, refusals } from '../../errors.ts';
import { identifier } from '../../wallets/records/schemas.ts';
import { getIssuerKey, type IssuerKeyDeps, signAsIssuer, thumbprintOf } from './issuer-key.ts';

const route = {
  tag: 'Services',
  policy: 'RequireService',
  rateLimit: 'none',
  params: z.object({ address: identifier }),
  noStore: true,
} as const;
const path = '/api/internal/wallets/:address/issuer-cert-key';
const ofIssuerKey = refusals('WALLET_NOT_FOUND', 'CERT_KEY_NOT_ELIGIBLE', 'WALLET_LOCKED', 'WALLET_DELETED');

const issuerKeySchema = z.object({
  publicKeySpki: z.string().describe('Base64 of the SubjectPublicKeyInfo of a P-256 key.'),
  boundKeySource: z.enum(['Primary', 'HaipCoKey']),
  thumbprint: z.string().describe('SHA-256 thumbprint of the key (RFC 7638), base64url.'),
});

const signBody = z.object({ digest: z.string().max(64).describe('Base64 of 32 bytes.') });

/**
 * The key that certificates of an organisation name; for the tenant and the credential service. The gateway does not
 * route to it.
 */
export function mountIssuerKeyRoutes(app: App, deps: IssuerKeyDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path,
    operationId: 'getIssuerKey',
    summary: 'The P-256 key of the wallet of an organisation for certificates',
    answers: { 200: json('The key.', issuerKeySchema) },
    refusals: ofIssuerKey,
    handle: async ({ caller, params }) => {
      const { signer, source } = await getIssuerKey(deps, caller, params.address);
      return {
        publicKeySpki: encodeBase64(signer.publicKey),
        boundKeySource: source,
        thumbprint: thumbprintOf(signer.publicKey),
      };
    },
  });

  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${path}/sign`,
    operationId: 'signAsIssuer',
    summary: 'Sign a digest with the key of an organisation for certificates',
    body: { schema: signBody, example: { digest: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' } },
    answers: { 200: json('r and s, 32 bytes each, in base64.', z.object({ signature: z.string() })) },
    refusals: [...ofIssuerKey, ...refusals('INVALID_BASE64', 'PREHASH_LENGTH')],
    handle: async ({ caller, params, body }) => {
      const digest = decodeBase64Any(body.digest);
      if (digest.length !== 32) throw refusal('PREHASH_LENGTH');
      return { signature: encodeBase64(await signAsIssuer(deps, caller, params.address, digest)) };
    },
  });
}

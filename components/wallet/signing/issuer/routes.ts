import { z } from 'zod';
import { decodeBase64Any, encodeBase64 } from '#core/encoding/base64.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusal, refusals } from '../../errors.ts';
import { identifier } from '../../wallets/records/schemas.ts';
import { getIssuerKey, type IssuerKeyDeps, KEY_USES, signAsIssuer, thumbprintOf } from './issuer-key.ts';

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
  boundKeySource: z
    .enum(['Primary', 'HaipCoKey', 'CoKey'])
    .describe('The primary key of the wallet, its issuer key, or the key of another use.'),
  thumbprint: z.string().describe('SHA-256 thumbprint of the key (RFC 7638), base64url.'),
});

const keyQuery = z.object({
  use: z
    .enum(KEY_USES)
    .default('issuer')
    .describe('Which key: root for the tenant service alone, status-list for the credential service alone.'),
  organizationId: identifier.optional().describe('The organisation whose present wallet it must be.'),
});

const signBody = keyQuery.extend({ digest: z.string().max(64).describe('Base64 of 32 bytes.') });

/**
 * The P-256 keys of an organisation for its certificates, credentials and status lists; for the tenant and the credential
 * service. The gateway does not route to them.
 */
export function mountIssuerKeyRoutes(app: App, deps: IssuerKeyDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path,
    operationId: 'getIssuerKey',
    summary: 'A P-256 key of the wallet of an organisation for certificates, credentials or status lists',
    query: keyQuery,
    answers: { 200: json('The key.', issuerKeySchema) },
    refusals: ofIssuerKey,
    handle: async ({ caller, params, query }) => {
      const { signer, source } = await getIssuerKey(deps, caller, { ...params, ...query });
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
    summary: 'Sign a digest with a key of an organisation for certificates, credentials or status lists',
    body: { schema: signBody, example: { digest: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' } },
    answers: { 200: json('r and s, 32 bytes each, in base64.', z.object({ signature: z.string() })) },
    refusals: [...ofIssuerKey, ...refusals('INVALID_BASE64', 'PREHASH_LENGTH')],
    handle: async ({ caller, params, body }) => {
      const { digest: text, ...key } = body;
      const digest = decodeBase64Any(text);
      if (digest.length !== 32) throw refusal('PREHASH_LENGTH');
      return { signature: encodeBase64(await signAsIssuer(deps, caller, { ...params, ...key }, digest)) };
    },
  });
}

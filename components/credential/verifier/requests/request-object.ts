import { z } from 'zod';
import type { VerifierIdentity } from '../identity/identity.ts';
import type { StoredRequest } from './store.ts';

/** Audience of request objects for wallets without metadata (OpenID4VP 1.0, section 5.8). */
const WALLET_AUDIENCE = 'https://self-issued.me/v2';

const VP_FORMATS = {
  'dc+sd-jwt': { 'sd-jwt_alg_values': ['ES256'], 'kb-jwt_alg_values': ['ES256', 'EdDSA'] },
  mso_mdoc: { issuerauth_alg_values: [-7, -9], deviceauth_alg_values: [-7, -9] },
} as const;

const publicKey = z.object({
  kty: z.string(),
  crv: z.string(),
  x: z.string(),
  y: z.string(),
  kid: z.string(),
  use: z.string(),
  alg: z.string(),
});

/** Where a wallet posts its answer. */
export function responseUri(issuerUrl: string, requestId: string): string {
  return `${issuerUrl}/api/v1/verifier/requests/${requestId}/direct-post`;
}

/** The signed request object (RFC 9101; OpenID4VP 1.0, section 5.10). */
export function requestObject(
  request: StoredRequest,
  {
    verifier,
    issuerUrl,
    walletNonce,
  }: { verifier: VerifierIdentity; issuerUrl: string; walletNonce?: string | undefined },
): string {
  const { terms, decryptionKey } = request;
  const encryption = decryptionKey === null ? {} : encryptionMetadata(publicKey.parse(decryptionKey));
  return verifier.sign('oauth-authz-req+jwt', {
    iss: request.clientId,
    aud: WALLET_AUDIENCE,
    iat: Math.floor(request.createdAt.getTime() / 1000),
    exp: Math.floor(request.expiresAt.getTime() / 1000),
    response_type: 'vp_token',
    response_mode: terms.responseMode,
    response_uri: responseUri(issuerUrl, request.id),
    client_id: request.clientId,
    nonce: request.nonce,
    state: request.state,
    dcql_query: terms.query,
    client_metadata: { vp_formats_supported: VP_FORMATS, ...encryption },
    ...(walletNonce !== undefined && { wallet_nonce: walletNonce }),
  });
}

function encryptionMetadata(key: z.output<typeof publicKey>): object {
  return { jwks: { keys: [key] }, encrypted_response_enc_values_supported: ['A128GCM', 'A256GCM'] };
}

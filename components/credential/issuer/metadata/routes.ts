import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import type { Reader } from '#kit/db/db.ts';
import { type App, addRoute, answer, json, jsonText } from '#kit/http/http.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import type { Profile } from '../../protocol/profile.ts';
import { authorizationServerMetadata, issuerMetadata } from './documents.ts';
import { listConfigurations } from './store.ts';

export interface MetadataRouteDeps {
  readonly db: { readonly read: Reader<CredentialDatabase> };
  readonly clock: Clock;
  readonly issuerUrl: string;
  readonly profile: Profile;
  readonly requiresKeyAttestation: boolean;
  /** Signs a JWT of type `typ` under the certificate of this installation. */
  readonly verifiers: { current(): { sign(typ: string, payload: object): string } };
}

const text = z.string();
const texts = z.array(text);
const named = z.array(z.object({ name: text, locale: text }));

const issuerSchema = z
  .object({
    credential_issuer: text,
    credential_endpoint: text,
    nonce_endpoint: text,
    batch_credential_issuance: z.object({ batch_size: z.int() }),
    credential_response_encryption: z.object({
      alg_values_supported: texts,
      enc_values_supported: texts,
      encryption_required: z.boolean(),
    }),
    display: named,
    credential_configurations_supported: z.record(
      text,
      z.object({
        format: text,
        vct: text.optional(),
        doctype: text.optional(),
        scope: text,
        cryptographic_binding_methods_supported: texts,
        credential_signing_alg_values_supported: z.array(z.union([text, z.int()])),
        proof_types_supported: z.record(
          text,
          z.object({
            proof_signing_alg_values_supported: texts,
            key_attestations_required: z.strictObject({}).optional(),
          }),
        ),
        credential_metadata: z.object({
          display: named,
          claims: z.array(z.object({ path: texts })).optional(),
        }),
      }),
    ),
  })
  .meta({ id: 'CredentialIssuerMetadata' });

const serverSchema = z
  .object({
    issuer: text,
    token_endpoint: text,
    dpop_signing_alg_values_supported: texts,
    grant_types_supported: texts,
    response_types_supported: texts,
    token_endpoint_auth_methods_supported: texts,
    'pre-authorized_grant_anonymous_access_supported': z.boolean().optional(),
    authorization_endpoint: text.optional(),
    pushed_authorization_request_endpoint: text.optional(),
    require_pushed_authorization_requests: z.boolean().optional(),
    code_challenge_methods_supported: texts.optional(),
    authorization_response_iss_parameter_supported: z.boolean().optional(),
    authorization_details_types_supported: texts.optional(),
    client_attestation_signing_alg_values_supported: texts.optional(),
    client_attestation_pop_signing_alg_values_supported: texts.optional(),
  })
  .meta({ id: 'CredentialAuthorizationServerMetadata' });

/** A first offer of a type adds it to the metadata, so caches keep them for a minute only. */
const headers = { 'cache-control': 'public, max-age=60' };
/** The metadata of the issuer has two forms. */
const issuerHeaders = { ...headers, vary: 'accept' };
const tag = 'Credential exchange';

/** Mounts the metadata of the issuer, also below the path of an issuer that has one. */
export function mountMetadataRoutes(app: App, deps: MetadataRouteDeps): void {
  const { issuerUrl } = deps;
  const { pathname } = URL.parse(issuerUrl ?? '') ?? { pathname: '/' };
  const suffix = pathname === '/' ? '' : pathname;
  addRoute(app, {
    method: 'GET',
    path: `/.well-known/openid-credential-issuer${suffix}`,
    operationId: 'getCredentialIssuerMetadata',
    tag,
    summary: 'What this issuer offers (OpenID4VCI 1.0, section 12.2)',
    policy: 'Anonymous',
    rateLimit: 'CredentialExchange',
    headers: z.object({ accept: text.optional().describe('`application/jwt` for the signed form.') }),
    answers: {
      200: { ...json('The metadata.', issuerSchema), otherTypes: { 'application/jwt': text } },
    },
    refusals: [],
    handle: async ({ request }) => {
      const listed = await listConfigurations(deps.db.read);
      const metadata = issuerMetadata(issuerUrl, listed, deps.requiresKeyAttestation);
      if (!prefersJwt(request.headers.accept)) return answer(200, metadata, issuerHeaders);
      const iat = Math.floor(deps.clock.nowMs() / 1000);
      const payload = { ...metadata, sub: issuerUrl, iat };
      const jwt = deps.verifiers.current().sign('openidvci-issuer-metadata+jwt', payload);
      return answer(200, jsonText(jwt), { ...issuerHeaders, 'content-type': 'application/jwt' });
    },
  });

  addRoute(app, {
    method: 'GET',
    path: `/.well-known/oauth-authorization-server${suffix}`,
    operationId: 'getCredentialAuthorizationServerMetadata',
    tag,
    summary: 'The token endpoint of wallets (RFC 8414)',
    policy: 'Anonymous',
    rateLimit: 'CredentialExchange',
    answers: { 200: json('The metadata.', serverSchema) },
    refusals: [],
    handle: () => answer(200, authorizationServerMetadata(issuerUrl, deps.profile), headers),
  });
}

/** Whether a client asks for the signed form (OpenID4VCI 1.0, section 12.2.2). */
function prefersJwt(accept: string | undefined): boolean {
  const types = accept?.split(',').map((type) => type.split(';', 1)[0]?.trim()) ?? [];
  const jwt = types.indexOf('application/jwt');
  const json = types.indexOf('application/json');
  return jwt >= 0 && (json < 0 || jwt < json);
}

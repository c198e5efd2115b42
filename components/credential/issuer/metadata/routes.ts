import { z } from 'zod';
import type { Reader } from '#kit/db/db.ts';
import { type App, addRoute, answer, json } from '#kit/http/http.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { authorizationServerMetadata, issuerMetadata } from './documents.ts';
import { listConfigurations } from './store.ts';

export interface MetadataRouteDeps {
  readonly db: { readonly read: Reader<CredentialDatabase> };
  readonly issuerUrl: string;
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
        proof_types_supported: z.object({ jwt: z.object({ proof_signing_alg_values_supported: texts }) }),
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
    grant_types_supported: texts,
    response_types_supported: texts,
    token_endpoint_auth_methods_supported: texts,
    'pre-authorized_grant_anonymous_access_supported': z.boolean(),
    dpop_signing_alg_values_supported: texts,
  })
  .meta({ id: 'CredentialAuthorizationServerMetadata' });

/** A first offer of a type adds it to the metadata, so caches keep them for a minute only. */
const headers = { 'cache-control': 'public, max-age=60' };
const tag = 'Credential exchange';

/** Mounts the metadata of the issuer, also below the path of an issuer that has one. */
export function mountMetadataRoutes(app: App, { db, issuerUrl }: MetadataRouteDeps): void {
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
    answers: { 200: json('The metadata.', issuerSchema) },
    refusals: [],
    handle: async () => answer(200, issuerMetadata(issuerUrl, await listConfigurations(db.read)), headers),
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
    handle: () => answer(200, authorizationServerMetadata(issuerUrl), headers),
  });
}

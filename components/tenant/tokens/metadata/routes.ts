import { z } from 'zod';
import { issuerOf } from '#core/identity/tiers.ts';
import { type App, addRoute, answer, json } from '#kit/http/http.ts';
import type { SigningKeySet } from '../keys/key-set.ts';

export interface MetadataDeps {
  readonly keys: Pick<SigningKeySet, 'jwks'>;
  readonly installation: string;
  /** Public address of the gateway, without a slash at the end. */
  readonly baseUrl: string;
}

const caching = { 'cache-control': 'public, max-age=300' } as const;

const jwkSchema = z
  .object({
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    x: z.string(),
    y: z.string(),
    kid: z.string().describe('Thumbprint of RFC 7638.'),
    alg: z.literal('ES256'),
    use: z.literal('sig'),
  })
  .meta({ id: 'JsonWebKey' });

const serverSchema = z.object({
  issuer: z.string().describe('The `iss` of tokens, which is not a URL.'),
  jwks_uri: z.string(),
  token_endpoint: z.string(),
  introspection_endpoint: z.string(),
  revocation_endpoint: z.string(),
  grant_types_supported: z.array(z.string()),
  response_types_supported: z.array(z.string()),
  token_endpoint_auth_methods_supported: z.array(z.string()),
});

const route = {
  method: 'GET',
  tag: 'Metadata',
  policy: 'Anonymous',
  rateLimit: 'none',
  refusals: [],
} as const;

export function mountMetadata(app: App, deps: MetadataDeps): void {
  addRoute(app, {
    ...route,
    path: '/.well-known/jwks.json',
    operationId: 'getJsonWebKeySet',
    summary: 'The keys that verify tokens',
    answers: { 200: json('The key set (RFC 7517).', z.object({ keys: z.array(jwkSchema) })) },
    handle: () => answer(200, deps.keys.jwks(), caching),
  });
  addRoute(app, {
    ...route,
    path: '/.well-known/oauth-authorization-server/api/service-auth',
    operationId: 'getAuthorizationServerMetadata',
    summary: 'The endpoints for tokens',
    answers: { 200: json('The metadata (RFC 8414).', serverSchema) },
    handle: () => answer(200, describeServer(deps), caching),
  });
}

/** RFC 8414, except that the issuer is the `iss` of the tokens, which is not a URL. */
function describeServer({ installation, baseUrl }: MetadataDeps): z.output<typeof serverSchema> {
  return {
    issuer: issuerOf(installation),
    jwks_uri: `${baseUrl}/.well-known/jwks.json`,
    token_endpoint: `${baseUrl}/api/service-auth/token`,
    introspection_endpoint: `${baseUrl}/api/auth/token/introspect`,
    revocation_endpoint: `${baseUrl}/api/auth/token/revoke`,
    grant_types_supported: ['password', 'refresh_token'],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ['none'],
  };
}

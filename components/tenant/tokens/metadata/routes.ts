import { z } from 'zod';
import { issuerOf } from '#core/identity/tiers.ts';
import type { App } from '#kit/http/http.ts';
import type { SigningKeySet } from '../keys/key-set.ts';

export interface MetadataDeps {
  readonly keys: Pick<SigningKeySet, 'jwks'>;
  readonly installation: string;
  /** Public address of the gateway, without a slash at the end. */
  readonly baseUrl: string;
}

const cacheControl = 'public, max-age=300';
const jwksSchema = z.object({ keys: z.array(z.record(z.string(), z.string())) });

export function mountMetadata(app: App, deps: MetadataDeps): void {
  const tags = ['Metadata'];
  app.get(
    '/.well-known/jwks.json',
    {
      config: { policy: 'Anonymous' },
      schema: { operationId: 'getJsonWebKeySet', tags, response: { 200: jwksSchema } },
    },
    async (_request, reply) => reply.header('cache-control', cacheControl).send(deps.keys.jwks()),
  );
  app.get(
    '/.well-known/oauth-authorization-server/api/service-auth',
    {
      config: { policy: 'Anonymous' },
      schema: {
        operationId: 'getAuthorizationServerMetadata',
        tags,
        response: { 200: z.looseObject({ issuer: z.string(), jwks_uri: z.string() }) },
      },
    },
    async (_request, reply) => reply.header('cache-control', cacheControl).send(describeServer(deps)),
  );
}

/** RFC 8414, except that the issuer is the `iss` of the tokens, which is not a URL. */
function describeServer({ installation, baseUrl }: MetadataDeps) {
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

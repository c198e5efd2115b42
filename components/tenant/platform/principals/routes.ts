import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readableLine } from '#core/encoding/readable.ts';
import { type App, acceptForms, addRoute, json } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { refusals } from '../../errors.ts';
import { unstored } from '../../requests/answers.ts';
import { originOf } from '../../requests/origin.ts';
import { parametersOf } from '../../tokens/oauth/form-body.ts';
import { formRoute } from '../../tokens/oauth/form-route.ts';
import { clientForm, delegationForm } from '../../tokens/oauth/form-schemas.ts';
import { mintDelegatedToken } from './delegate.ts';
import { type MintDeps, type MintRequest, mintServiceToken } from './mint.ts';
import { type RotateDeps, rotateSecret } from './rotate-secret.ts';
import { delegatedTokenPath, tokenPath } from './token-listener.ts';

export interface InternalDeps {
  readonly mint: MintDeps;
  readonly rotate: RotateDeps;
  readonly log: Logger;
}

const serviceTokenSchema = z
  .object({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    expires_in: z.int().describe('Seconds.'),
    scope: z.string(),
  })
  .meta({ id: 'ServiceToken' });
const delegatedTokenSchema = serviceTokenSchema
  .extend({ issued_token_type: z.literal('urn:ietf:params:oauth:token-type:access_token') })
  .meta({ id: 'DelegatedToken' });

const anonymous = { tag: 'Internal', policy: 'Anonymous', rateLimit: 'none', noStore: true } as const;
const exampleClient = {
  client_id: 'service-register',
  client_secret: 'c2VydmljZS1yZWdpc3RlciBleGFtcGxlIHNlY3JldCE',
};

/** The internal routes on the listener without TLS: they require a client secret. */
export function mountInternal(app: App, deps: InternalDeps): void {
  app.register((scope: App, _options, done) => {
    acceptForms(scope);
    mountMinting(scope, deps);
    done();
  });
  mountRotation(app, deps);
}

function mountMinting(app: App, deps: InternalDeps): void {
  const route = { ...anonymous, ...formRoute(() => deps.log) } as const;
  addRoute(app, {
    ...route,
    path: tokenPath,
    operationId: 'mintServiceToken',
    summary: 'Get a token of a service',
    body: { schema: clientForm, example: { grant_type: 'client_credentials', ...exampleClient } },
    answers: { 200: json('The token.', serviceTokenSchema) },
    handle: async ({ request }) => unstored(await mintServiceToken(deps.mint, mintRequestOf(request))),
  });
  addRoute(app, {
    ...route,
    path: delegatedTokenPath,
    operationId: 'mintDelegatedToken',
    summary: 'Get a token of a service that acts for a user',
    body: {
      schema: delegationForm,
      example: { ...exampleClient, delegated_user_id: '0197a5d2-7c1e-7b40-9d52-3f1c2a4b5e60' },
    },
    answers: { 200: json('The token.', delegatedTokenSchema) },
    handle: async ({ request }) => unstored(await mintDelegatedToken(deps.mint, mintRequestOf(request))),
  });
}

function mintRequestOf(request: FastifyRequest): MintRequest {
  return {
    parameters: parametersOf(request.body),
    authorization: request.headers.authorization,
    certificate: undefined,
    origin: originOf(request),
  };
}

const clientId = readableLine.min(1).max(128).optional();

function mountRotation(app: App, deps: InternalDeps): void {
  addRoute(app, {
    ...anonymous,
    method: 'POST',
    path: '/api/internal/service-auth/rotate-secret',
    operationId: 'rotateClientSecret',
    summary: 'Replace the secret of a service',
    query: z.object({ clientId }),
    body: {
      schema: z.object({ clientId, currentSecret: z.string().min(1).max(512) }),
      example: { clientId: exampleClient.client_id, currentSecret: exampleClient.client_secret },
    },
    answers: {
      200: json(
        'The new secret, shown once.',
        z.object({ clientId: z.string(), newClientSecret: z.string(), warning: z.string() }),
      ),
    },
    refusals: refusals('SHARED_SECRETS_DISABLED', 'INVALID_CLIENT', 'RATE_LIMITED'),
    handle: async ({ query, body, request }) => {
      const named = body.clientId ?? query.clientId ?? '';
      deps.mint.takeToken(`secret ${named}`);
      const { currentSecret } = body;
      const origin = originOf(request);
      const newClientSecret = await rotateSecret(deps.rotate, { clientId: named, currentSecret, origin });
      const warning = 'The secret is shown once; the previous one is no longer valid.';
      return unstored({ clientId: named, newClientSecret, warning });
    },
  });
}

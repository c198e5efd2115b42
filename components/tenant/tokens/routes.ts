import { z } from 'zod';
import { identifier } from '#core/identity/identifier.ts';
import { type App, acceptForms, addRoute, json } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { refusals } from '../errors.ts';
import { doneSchema, unstored } from '../requests/answers.ts';
import { originOf } from '../requests/origin.ts';
import { tier } from '../requests/tier.ts';
import { type GrantDeps, grantTokens } from './grant.ts';
import {
  findLivingRefreshToken,
  introspectionSchema,
  presentIntrospection,
  presentRefreshToken,
} from './introspect.ts';
import { parametersOf } from './oauth/form-body.ts';
import { formRoute } from './oauth/form-route.ts';
import { grantForm, tokenForm } from './oauth/form-schemas.ts';
import { getParameter } from './oauth/parameters.ts';
import { refresh } from './refresh.ts';
import { type RevokeDeps, revokeOrganization, revokeToken, revokeUser } from './revoke.ts';
import { presentTokens, tokenSchema } from './sessions/token-response.ts';

const refreshSchema = z.object({
  refreshToken: z.string().min(1).max(512),
  tier: tier.optional(),
});

export interface TokenRouteDeps {
  readonly grant: GrantDeps;
  readonly revoke: RevokeDeps;
  readonly log: Logger;
}

export function mountTokens(app: App, deps: TokenRouteDeps): void {
  mountGrants(app, deps);
  app.register((scope: App, _options, done) => {
    acceptForms(scope);
    mountForms(scope, deps);
    done();
  });
  mountRevocations(app, deps);
}

const tag = 'Tokens';
const exampleToken = 'rt_AZkQ3vL8cQeKXw2pVd0u1gAAAAAB.5s7pVnq0mZ1c';

function mountGrants(app: App, deps: TokenRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/auth/token/refresh',
    operationId: 'refreshToken',
    tag,
    summary: 'Exchange a refresh token for new tokens',
    policy: 'Anonymous',
    rateLimit: 'Authentication',
    body: { schema: refreshSchema, example: { refreshToken: exampleToken } },
    answers: { 200: json('The new tokens.', tokenSchema) },
    refusals: refusals('INVALID_REFRESH_TOKEN', 'TIER_NOT_ENTITLED'),
    noStore: true,
    handle: async ({ body, request }) =>
      unstored(presentTokens(await refresh(deps.grant.refresh, { ...body, origin: originOf(request) }))),
  });
}

/** Routes that OAuth clients call with forms. */
function mountForms(app: App, deps: TokenRouteDeps): void {
  const route = { ...formRoute(() => deps.log), tag } as const;
  const tokenBody = { schema: tokenForm, example: { token: exampleToken } };
  addRoute(app, {
    ...route,
    path: '/api/service-auth/token',
    operationId: 'issueToken',
    summary: 'Get tokens with a password or a refresh token',
    description:
      'grant_type password (username, password) or refresh_token (refresh_token); optional tier, platform or consumer.',
    policy: 'Anonymous',
    rateLimit: 'Authentication',
    body: {
      schema: grantForm,
      example: { grant_type: 'password', username: 'ada@example.org', password: 'blue kettle winter parade' },
    },
    answers: { 200: json('The tokens.', tokenSchema) },
    noStore: true,
    handle: async ({ body, request }) =>
      unstored(presentTokens(await grantTokens(deps.grant, parametersOf(body), originOf(request)))),
  });
  addRoute(app, {
    ...route,
    path: '/api/auth/token/introspect',
    operationId: 'introspectToken',
    summary: 'Whether a token is valid, and its claims',
    policy: 'RequireService',
    rateLimit: 'none',
    body: tokenBody,
    answers: { 200: json('The claims; only `active` when the token is not valid.', introspectionSchema) },
    noStore: true,
    handle: async ({ body }) => {
      const token = getParameter(parametersOf(body), 'token');
      const refreshToken = await findLivingRefreshToken(deps.revoke, token);
      if (refreshToken !== undefined) return unstored(presentRefreshToken(refreshToken));
      return unstored(presentIntrospection(await deps.revoke.findCaller(token)));
    },
  });
  addRoute(app, {
    ...route,
    path: '/api/auth/token/revoke',
    operationId: 'revokeToken',
    summary: 'Revoke a token',
    description: 'A refresh token needs no bearer: who has it may end its session (RFC 7009).',
    policy: 'Anonymous',
    optionalToken: true,
    admits: ['profile', 'password'],
    rateLimit: 'none',
    body: tokenBody,
    answers: { 200: json('The token is not valid any more, or never was.', doneSchema) },
    handle: async ({ caller, body, request }) => {
      const token = getParameter(parametersOf(body), 'token');
      await revokeToken(deps.revoke, caller, { token, origin: originOf(request) });
      return { success: true, message: 'The token is no longer valid.' };
    },
  });
}

function mountRevocations(app: App, deps: TokenRouteDeps): void {
  const route = { method: 'POST', tag, policy: 'RequireAdministrator', rateLimit: 'Strict' } as const;
  addRoute(app, {
    ...route,
    path: '/api/auth/token/revoke-user',
    operationId: 'revokeUserTokens',
    summary: 'Revoke all tokens of a user',
    body: {
      schema: z.object({ userId: identifier }),
      example: { userId: '0197a5d2-7c1e-7b40-9d52-3f1c2a4b5e60' },
    },
    answers: { 200: json('The tokens are revoked.', doneSchema) },
    refusals: refusals('USER_NOT_FOUND', 'FOREIGN_ORGANIZATION'),
    handle: async ({ caller, body, request }) => {
      await revokeUser(deps.revoke, caller, { ...body, origin: originOf(request) });
      return { success: true, message: 'All tokens of the user are revoked.' };
    },
  });
  addRoute(app, {
    ...route,
    path: '/api/auth/token/revoke-organization',
    operationId: 'revokeOrganizationTokens',
    summary: 'Revoke all tokens of the users of an organisation',
    body: {
      schema: z.object({ organizationId: identifier }),
      example: { organizationId: '0197a5d2-5f00-7c11-8a3b-6e2d9c0f4a17' },
    },
    answers: { 200: json('The tokens are revoked.', doneSchema) },
    refusals: refusals('ORGANIZATION_NOT_FOUND', 'FOREIGN_ORGANIZATION'),
    handle: async ({ caller, body, request }) => {
      await revokeOrganization(deps.revoke, caller, { ...body, origin: originOf(request) });
      return { success: true, message: 'All tokens of the organisation are revoked.' };
    },
  });
}

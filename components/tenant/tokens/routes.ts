import { z } from 'zod';
import { identifier } from '#core/identity/identifier.ts';
import { type App, callerOf } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { doneSchema, noStore } from '../requests/answers.ts';
import { originOf } from '../requests/origin.ts';
import { tier } from '../requests/tier.ts';
import { type GrantDeps, grantTokens } from './grant.ts';
import { presentIntrospection } from './introspect.ts';
import { acceptForms, parametersOf } from './oauth/form-body.ts';
import { form, grantForm, oauthErrors, tokenForm } from './oauth/form-schemas.ts';
import { oauthErrorHandler } from './oauth/oauth-reply.ts';
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
  mountForms(app, deps);
  mountRevocations(app, deps);
}

const tags = ['Tokens'];

function mountGrants(app: App, deps: TokenRouteDeps): void {
  app.post(
    '/api/auth/token/refresh',
    {
      config: { policy: 'Anonymous', rateLimit: 'Authentication' },
      schema: { operationId: 'refreshToken', tags, body: refreshSchema, response: { 200: tokenSchema } },
    },
    async (request, reply) => {
      const tokens = await refresh(deps.grant.refresh, { ...request.body, origin: originOf(request) });
      return noStore(reply).send(presentTokens(tokens));
    },
  );
}

/** Routes that OAuth clients call with forms. */
function mountForms(app: App, deps: TokenRouteDeps): void {
  app.register((scope: App, _options, done) => {
    acceptForms(scope);
    scope.post(
      '/api/service-auth/token',
      {
        config: { policy: 'Anonymous', rateLimit: 'Authentication' },
        errorHandler: oauthErrorHandler(() => deps.log),
        validatorCompiler: form.validatorCompiler,
        schema: {
          operationId: 'issueToken',
          tags,
          description:
            'grant_type password (username, password) or refresh_token (refresh_token); optional tier, platform or consumer.',
          consumes: form.consumes,
          body: grantForm,
          response: { 200: tokenSchema, ...oauthErrors },
        },
      },
      async (request, reply) => {
        const tokens = await grantTokens(deps.grant, parametersOf(request.body), originOf(request));
        return noStore(reply).send(presentTokens(tokens));
      },
    );
    scope.post(
      '/api/auth/token/introspect',
      {
        config: { policy: 'RequireService' },
        errorHandler: oauthErrorHandler(() => deps.log),
        validatorCompiler: form.validatorCompiler,
        schema: {
          operationId: 'introspectToken',
          tags,
          consumes: form.consumes,
          body: tokenForm,
          response: { 200: z.looseObject({ active: z.boolean() }), ...oauthErrors },
        },
      },
      async (request, reply) => {
        const token = getParameter(parametersOf(request.body), 'token');
        const caller = await deps.revoke.findCaller(token);
        return noStore(reply)
          .type('application/json')
          .send(JSON.stringify(presentIntrospection(caller)));
      },
    );
    scope.post(
      '/api/auth/token/revoke',
      {
        config: { policy: 'RequireAuthenticated' },
        errorHandler: oauthErrorHandler(() => deps.log),
        validatorCompiler: form.validatorCompiler,
        schema: {
          operationId: 'revokeToken',
          tags,
          consumes: form.consumes,
          body: tokenForm,
          response: { 200: doneSchema, ...oauthErrors },
        },
      },
      async (request) => {
        const token = getParameter(parametersOf(request.body), 'token');
        await revokeToken(deps.revoke, callerOf(request), { token, origin: originOf(request) });
        return { success: true, message: 'The token is no longer valid.' };
      },
    );
    done();
  });
}

function mountRevocations(app: App, deps: TokenRouteDeps): void {
  app.post(
    '/api/auth/token/revoke-user',
    {
      config: { policy: 'RequireAdministrator', rateLimit: 'Strict' },
      schema: {
        operationId: 'revokeUserTokens',
        tags,
        body: z.object({ userId: identifier }),
        response: { 200: doneSchema },
      },
    },
    async (request) => {
      await revokeUser(deps.revoke, callerOf(request), { ...request.body, origin: originOf(request) });
      return { success: true, message: 'All tokens of the user are revoked.' };
    },
  );
  app.post(
    '/api/auth/token/revoke-organization',
    {
      config: { policy: 'RequireAdministrator', rateLimit: 'Strict' },
      schema: {
        operationId: 'revokeOrganizationTokens',
        tags,
        body: z.object({ organizationId: identifier }),
        response: { 200: doneSchema },
      },
    },
    async (request) => {
      await revokeOrganization(deps.revoke, callerOf(request), {
        ...request.body,
        origin: originOf(request),
      });
      return { success: true, message: 'All tokens of the organisation are revoked.' };
    },
  );
}

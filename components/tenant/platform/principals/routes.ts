import { z } from 'zod';
import { readableLine } from '#core/encoding/readable.ts';
import type { App } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { noStore } from '../../requests/answers.ts';
import { originOf } from '../../requests/origin.ts';
import { acceptForms, parametersOf } from '../../tokens/oauth/form-body.ts';
import { clientForm, delegationForm, form, oauthErrors } from '../../tokens/oauth/form-schemas.ts';
import { oauthErrorHandler } from '../../tokens/oauth/oauth-reply.ts';
import { mintDelegatedToken } from './delegate.ts';
import { type MintDeps, type MintRequest, mintServiceToken } from './mint.ts';
import { type RotateDeps, rotateSecret } from './rotate-secret.ts';
import { delegatedTokenPath, tokenPath } from './token-listener.ts';

export interface InternalDeps {
  readonly mint: MintDeps;
  readonly rotate: RotateDeps;
  readonly log: Logger;
}

const answerSchema = z.object({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int().describe('Seconds.'),
  scope: z.string(),
});

/** The internal routes on the listener without TLS: they require a client secret. */
export function mountInternal(app: App, deps: InternalDeps): void {
  const tags = ['Internal'];
  const acts = [
    { path: tokenPath, operationId: 'mintServiceToken', body: clientForm, mint: mintServiceToken },
    {
      path: delegatedTokenPath,
      operationId: 'mintDelegatedToken',
      body: delegationForm,
      mint: mintDelegatedToken,
    },
  ] as const;
  app.register((scope: App, _options, done) => {
    acceptForms(scope);
    for (const { path, operationId, body, mint } of acts) {
      scope.post(
        path,
        {
          config: { policy: 'Anonymous' },
          errorHandler: oauthErrorHandler(() => deps.log),
          validatorCompiler: form.validatorCompiler,
          schema: {
            operationId,
            tags,
            consumes: form.consumes,
            body,
            response: { 200: answerSchema, ...oauthErrors },
          },
        },
        async (request, reply) => {
          const mintRequest: MintRequest = {
            parameters: parametersOf(request.body),
            authorization: request.headers.authorization,
            certificate: undefined,
            origin: originOf(request),
          };
          return noStore(reply).send(await mint(deps.mint, mintRequest));
        },
      );
    }
    done();
  });
  mountRotation(app, deps);
}

const rotationSchema = z.object({
  clientId: readableLine.min(1).max(128).optional(),
  currentSecret: z.string().min(1).max(512),
});

function mountRotation(app: App, deps: InternalDeps): void {
  app.post(
    '/api/internal/service-auth/rotate-secret',
    {
      config: { policy: 'Anonymous' },
      schema: {
        operationId: 'rotateClientSecret',
        tags: ['Internal'],
        querystring: z.object({ clientId: readableLine.min(1).max(128).optional() }),
        body: rotationSchema,
        response: {
          200: z.object({ clientId: z.string(), newClientSecret: z.string(), warning: z.string() }),
        },
      },
    },
    async (request, reply) => {
      const clientId = request.body.clientId ?? request.query.clientId ?? '';
      deps.mint.takeToken(`secret ${clientId}`);
      const { currentSecret } = request.body;
      const newClientSecret = await rotateSecret(deps.rotate, {
        clientId,
        currentSecret,
        origin: originOf(request),
      });
      const warning = 'The secret is shown once; the previous one is no longer valid.';
      return noStore(reply).send({ clientId, newClientSecret, warning });
    },
  );
}

import { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide } from '#core/identity/policies.ts';
import { type App, peerSpiffeId } from '#kit/http/http.ts';
import type { Authenticator } from './authenticator.ts';

const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/** Implements authPlugin of auth.ts. */
export function enforcePolicies(app: App, authenticator: Authenticator): void {
  app.addHook('onRequest', async (request) => {
    const { policy, optionalToken = false } = request.routeOptions.config;
    const { authorization } = request.headers;
    // paths that nothing serves have no policy; they are answered 404
    const isAnonymous = policy === undefined || policy === 'Anonymous';
    if (isAnonymous && !(optionalToken && authorization !== undefined)) return;
    request.caller = await identify(authenticator, authorization);
    if (isAnonymous) return;
    if (decide(policy, request.caller) !== 'allow') throw forbidden();
    if (policy === 'RequireOperator') assertOwnConnection(request, request.caller);
  });
}

function forbidden(): AppError {
  return new AppError('forbidden', 'FORBIDDEN', 'You may not do this.');
}

/** Internal routes take a token from nobody but its owner: whoever forwards or finds one cannot use it (D29). */
function assertOwnConnection(request: FastifyRequest, { clientId }: Caller): void {
  const isReal: boolean = request.raw.socket instanceof Socket;
  if (isReal && !peerSpiffeId(request).endsWith(`/service/${clientId}`)) throw forbidden();
}

// the challenge of a 401 is the business of kit/http
async function identify(authenticator: Authenticator, authorization: string | undefined): Promise<Caller> {
  if (authorization === undefined) {
    throw new AppError('unauthenticated', 'UNAUTHORIZED', 'Authentication is required.');
  }
  const [, token] = BEARER.exec(authorization) ?? [];
  if (token === undefined)
    throw new AppError('unauthenticated', 'UNAUTHORIZED', 'A bearer token is required.');
  return await authenticator.authenticate(token);
}

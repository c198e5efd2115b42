import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { FastifyRequest } from 'fastify';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide, type PolicyName } from '#core/identity/policies.ts';
import { type App, peerSpiffeId } from '#kit/http/http.ts';
import { clientIdOfName, parseSpiffeId } from '#kit/workload/svid.ts';
import type { Authenticator } from './authenticator.ts';

const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/** Paths that never leave the private network; the gateway answers 404 for them. */
const INTERNAL_ROUTE = /^\/api\/(?:[^/]+\/)?internal(?:\/|$)/;
const GATEWAY_CLIENT_ID = 'service-gateway';

/** Implements authPlugin of auth.ts. */
export function enforcePolicies(app: App, authenticator: Authenticator): void {
  app.addHook('onRequest', async (request) => {
    const { policy, optionalToken = false, hub = false } = request.routeOptions.config;
    const isInternal = INTERNAL_ROUTE.test(request.routeOptions.url ?? '');
    if (isInternal) assertNotGateway(request);
    const authorization = authorizationOf(request, hub);
    // Unknown paths have no policy and are answered 404.
    const isAnonymous = policy === undefined || policy === 'Anonymous';
    if (isAnonymous && !(optionalToken && authorization !== undefined)) return;
    request.caller = await identify(authenticator, authorization);
    assertUnrestricted(request, request.caller);
    if (!isAnonymous) assertAllowed(policy, request.caller, hub);
    if (isInternal || policy === 'RequireOperator') assertOwnConnection(request, request.caller);
  });
}

/** The Authorization header; of a request to a hub without one, the token of its query in the same form. */
function authorizationOf({ headers, query }: FastifyRequest, isHub: boolean): string | undefined {
  if (headers.authorization !== undefined || !isHub) return headers.authorization;
  const { access_token: token } = query as Readonly<Record<string, unknown>>;
  return typeof token === 'string' ? `Bearer ${token}` : undefined;
}

function assertAllowed(policy: PolicyName, caller: Caller, isHub: boolean): void {
  if (decide(policy, caller) === 'allow') return;
  if (isHub) throw new AppError('unauthenticated', 'UNAUTHORIZED', 'The token names no platform user.');
  throw forbidden();
}

/** Refuses a token whose owner has to do something first, on routes that do not say otherwise. */
function assertUnrestricted({ routeOptions, method }: FastifyRequest, { restriction }: Caller): void {
  const { admits = [], hub = false } = routeOptions.config;
  if (restriction === undefined || admits.includes(restriction)) return;
  if (restriction === 'profile') {
    throw new AppError('forbidden', 'PROFILE_INCOMPLETE', 'Complete your profile first.');
  }
  const isReading = (method === 'GET' || method === 'HEAD') && !hub;
  if (!isReading) throw new AppError('forbidden', 'PASSWORD_CHANGE_REQUIRED', 'Change your password first.');
}

function forbidden(): AppError {
  return new AppError('forbidden', 'FORBIDDEN', 'You may not do this.');
}

/**
 * Refuses the gateway on internal routes. A request that reaches one through the gateway has bypassed its routing, so
 * no token is accepted with it.
 */
function assertNotGateway(request: FastifyRequest): void {
  if (!(request.raw.socket instanceof TLSSocket)) return;
  if (peerClientId(request) === GATEWAY_CLIENT_ID) throw forbidden();
}

/**
 * Internal routes accept a token only over its owner's own connection, so a forwarded or stolen token is useless there.
 */
function assertOwnConnection(request: FastifyRequest, { clientId }: Caller): void {
  const isReal: boolean = request.raw.socket instanceof Socket;
  if (isReal && peerClientId(request) !== clientId) throw forbidden();
}

/** `{client id}` of `spiffe://{installation}/service/{client id}`; undefined for an SVID of another kind. */
function peerClientId(request: FastifyRequest): string | undefined {
  return clientIdOfName(parseSpiffeId(peerSpiffeId(request)));
}

// kit/http adds the challenge of a 401.
async function identify(authenticator: Authenticator, authorization: string | undefined): Promise<Caller> {
  if (authorization === undefined) {
    throw new AppError('unauthenticated', 'UNAUTHORIZED', 'Authentication is required.');
  }
  const [, token] = BEARER.exec(authorization) ?? [];
  if (token === undefined)
    throw new AppError('unauthenticated', 'UNAUTHORIZED', 'A bearer token is required.');
  return await authenticator.authenticate(token);
}

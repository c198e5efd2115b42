import type { FastifyReply, FastifyRequest } from 'fastify';
import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { presentOAuthError, toOAuthError } from './oauth.ts';

/** Error handler of a token route: the body of RFC 6749 section 5.2. */
export function oauthErrorHandler(log: () => Logger) {
  return (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const error = toOAuthError(thrown);
    if (error.status >= 500) log().error({ err: thrown, traceId: request.traceId }, 'token request failed');
    if (error.status === 401) {
      const scheme = error.error === 'invalid_client' ? 'Basic' : 'Bearer';
      const invalid = refusesBearer(thrown, request) ? ', error="invalid_token"' : '';
      reply.header('www-authenticate', `${scheme} realm="platform"${invalid}`);
    }
    if (error.retryAfterSeconds !== undefined) {
      reply.header('retry-after', String(Math.max(1, Math.ceil(error.retryAfterSeconds))));
    }
    reply
      .code(error.status)
      .headers({ 'cache-control': 'no-store', pragma: 'no-cache', 'content-type': 'application/json' })
      .send(JSON.stringify(presentOAuthError(error)));
  };
}

/** Whether the access token of the caller was refused, and not the token in the request (RFC 6750 section 3). */
function refusesBearer(thrown: unknown, request: FastifyRequest): boolean {
  const unauthorized = isAppError(thrown, 'unauthenticated') && thrown.code === 'UNAUTHORIZED';
  return unauthorized && request.headers.authorization !== undefined;
}

import type { FastifyRequest } from 'fastify';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Scope } from '#core/identity/scopes.ts';
import { callerOf } from '#kit/http/http.ts';

/** Hook of a route for services: refuses a token that was narrowed to other scopes. */
export function requireScope(scope: Scope): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    if (callerOf(request).scopes.includes(scope)) return;
    throw new AppError('forbidden', genericCode('forbidden'), `The token lacks the scope ${scope}.`);
  };
}

import type { FastifyRequest } from 'fastify';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Scope } from '#core/identity/scopes.ts';
import { callerOf } from '#kit/http/http.ts';

/** Hook of a service's route: a token that was narrowed to other things does not do. */
export function requireScope(scope: Scope): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    if (callerOf(request).scopes.includes(scope)) return;
    throw new AppError('forbidden', genericCode('forbidden'), `The token lacks the scope ${scope}.`);
  };
}

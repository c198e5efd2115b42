import type { FastifyRequest } from 'fastify';
import { AppError } from '#core/errors/errors.ts';

/** The access token of a request, used to call another service on behalf of its caller. */
export function bearerOf(request: FastifyRequest): string {
  const match = /^Bearer ([^\s]+)$/i.exec(request.headers.authorization ?? '');
  const token = match?.[1];
  if (token === undefined)
    throw new AppError('unauthenticated', 'UNAUTHORIZED', 'A bearer token is required.');
  return token;
}

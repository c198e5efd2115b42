import type { FastifyRequest } from 'fastify';
import type { RepeatableRequest } from '#kit/db/idempotency.ts';

/**
 * The request as it is stored under its `Idempotency-Key`: the key, the scope that the key is unique in, and the body.
 */
export function repeatable(request: FastifyRequest): RepeatableRequest {
  return {
    key: request.headers['idempotency-key'],
    scope: [request.caller?.subject ?? '', request.method, request.url],
    // as text, because rows of earlier releases store the hash of this form
    body: [JSON.stringify(request.body ?? null)],
  };
}

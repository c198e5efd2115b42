import type { FastifyRequest } from 'fastify';
import type { RepeatableRequest } from '#kit/db/idempotency.ts';

/** A request of a route as its `Idempotency-Key` remembers it (decision D40). */
export function repeatable(request: FastifyRequest): RepeatableRequest {
  return {
    key: request.headers['idempotency-key'],
    scope: [request.caller?.subject ?? '', request.method, request.url],
    // as text: the rows of earlier releases hold the hash of this form
    body: [JSON.stringify(request.body ?? null)],
  };
}

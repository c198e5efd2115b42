import type { FastifyRequest } from 'fastify';
import type { Origin } from '../audit/log/event.ts';

/** The origin of a request, for the audit log. */
export function originOf(request: FastifyRequest): Origin {
  return { ipAddress: request.ip, userAgent: request.headers['user-agent'] };
}

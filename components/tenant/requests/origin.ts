import type { FastifyRequest } from 'fastify';

/** The origin of a request, as far as the listener knows it. */
export interface Origin {
  readonly ipAddress?: string | undefined;
  readonly userAgent?: string | undefined;
}

/** The origin of a request, for the audit log. */
export function originOf(request: FastifyRequest): Origin {
  return { ipAddress: request.ip, userAgent: request.headers['user-agent'] };
}

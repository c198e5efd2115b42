import type { FastifyReply } from 'fastify';
import { z } from 'zod';

export const doneSchema = z.object({ success: z.boolean(), message: z.string() });

/** Marks an answer with or about tokens as `no-store` (RFC 6749 section 5.1). */
export function noStore(reply: FastifyReply): FastifyReply {
  return reply.headers({ 'cache-control': 'no-store', pragma: 'no-cache' });
}

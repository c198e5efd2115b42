import { z } from 'zod';

/**
 * Request headers of a route whose requests may be repeated: the IETF draft "The Idempotency-Key HTTP Header Field".
 * Other headers stay in `request.headers`.
 */
export const idempotencyHeaders = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x20-\x7e]{1,255}$/)
    .optional()
    .describe('The same key and body within 24 hours take effect once and have the same answer.'),
});

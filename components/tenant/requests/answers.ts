import { z } from 'zod';
import { answer } from '#kit/http/http.ts';

export const doneSchema = z
  .object({ success: z.boolean(), message: z.string() })
  .meta({ id: 'Acknowledgement' });

/** The answer of a `noStore` route with or about tokens: caches of HTTP/1.0 must not store it either (RFC 6749, 5.1). */
export function unstored<Body>(body: Body) {
  return answer(200, body, { pragma: 'no-cache' });
}

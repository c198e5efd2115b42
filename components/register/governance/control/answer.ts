import { z } from 'zod';
import { ForwardedRefusal } from '#kit/http/http.ts';
import type { SubmitAnswer } from '../../clients/validators.ts';

const coded = z.looseObject({ code: z.string() });

/** Code of a validator's refusal; undefined when there is none. */
export function refusedWith({ status, body }: SubmitAnswer): string | undefined {
  return status < 300 ? undefined : coded.safeParse(body).data?.code;
}

/**
 * Returns when a validator accepted the transaction.
 * @throws ForwardedRefusal with the validator's refusal
 */
export function assertAccepted(answer: SubmitAnswer): void {
  if (answer.status >= 300) throw new ForwardedRefusal(answer);
}

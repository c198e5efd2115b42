import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { SubmitAnswer } from '../clients.ts';

/** What a route answers, as it is kept for a repetition of the request. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Refusals are not kept: the client may mend the cause and send the request again. */
export function isAccepted({ status }: Answer): boolean {
  return status < 300;
}

const coded = z.looseObject({ code: z.string() });

/** Code of a validator's refusal; undefined when it gave none. */
export function refusedWith({ status, body }: Answer): string | undefined {
  return status < 300 ? undefined : coded.safeParse(body).data?.code;
}

/** What a route answers: `accepted` with 202 when a validator took the transaction, else the validator's refusal (D38). */
export function answerOf(answer: SubmitAnswer, accepted: object): Answer {
  return answer.status < 300 ? { status: 202, body: accepted } : answer;
}

/** Sends what was decided; refusals of validators go through as they came. */
export function sendAnswer(reply: FastifyReply, answer: Answer & { readonly retryAfterSeconds?: number }) {
  if (answer.status < 300) return reply.code(answer.status).send(answer.body);
  const { retryAfterSeconds = 0 } = answer;
  if (retryAfterSeconds > 0) reply.header('retry-after', String(retryAfterSeconds));
  return reply.code(answer.status).type('application/problem+json').send(JSON.stringify(answer.body));
}

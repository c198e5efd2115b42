import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { ForwardedRefusal } from '#kit/http/http.ts';
import type { SubmitAnswer } from '../../clients/validators.ts';

/** The answer of a route, as it is stored for repetitions of the request. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Refusals are not stored: the client may correct the cause and send the request again. */
export function isAccepted({ status }: Answer): boolean {
  return status < 300;
}

const coded = z.looseObject({ code: z.string() });

/** Code of a validator's refusal; undefined when there is none. */
export function refusedWith({ status, body }: Answer): string | undefined {
  return status < 300 ? undefined : coded.safeParse(body).data?.code;
}

/**
 * Returns when a validator accepted the transaction.
 * @throws ForwardedRefusal with the validator's refusal
 */
export function assertAccepted(answer: SubmitAnswer): void {
  if (answer.status >= 300) throw new ForwardedRefusal(answer);
}

/**
 * The answer of a route: `accepted` with 202 when a validator accepted the transaction, else the validator's refusal.
 */
export function answerOf(answer: SubmitAnswer, accepted: object): Answer {
  return answer.status < 300 ? { status: 202, body: accepted } : answer;
}

/** Rewrites a validator's refusal for the route that was called: the validator knows neither its path nor its trace. */
function rewritten(body: unknown, { url, traceId }: FastifyRequest): unknown {
  const parsed = coded.safeParse(body);
  if (!parsed.success) return body;
  const path = url.split('?', 1)[0] ?? '/';
  return { ...parsed.data, instance: path, path, traceId };
}

/** Sends the answer; a validator's refusal is passed through except for path and trace. */
export function sendAnswer(reply: FastifyReply, answer: Answer & { readonly retryAfterSeconds?: number }) {
  if (answer.status < 300) return reply.code(answer.status).send(answer.body);
  const { retryAfterSeconds = 0 } = answer;
  if (retryAfterSeconds > 0) reply.header('retry-after', String(retryAfterSeconds));
  return reply
    .code(answer.status)
    .type('application/problem+json')
    .send(JSON.stringify(rewritten(answer.body, reply.request)));
}

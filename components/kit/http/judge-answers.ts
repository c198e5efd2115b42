import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Logger } from '#kit/log/log.ts';
import type { App } from './app.ts';
import { contradictionOf } from './declared-answers.ts';
import { isDeclared } from './declared-refusals.ts';

const coded = z.object({ code: z.string() });

/**
 * Compares every answer with the declaration of its route and answers 500 in its place where they differ, so that a
 * declaration which is not true fails a test. For tests only.
 */
export function judgeAnswers(app: App, log: Logger): void {
  app.addHook('onSend', async (request, reply, payload) => {
    const contradiction = contradictionIn(request, reply, payload);
    if (contradiction === undefined) return payload;
    const { method } = request;
    const text = `${method} ${request.routeOptions.url ?? ''} answers what it does not declare: ${contradiction}`;
    log.error({ status: reply.statusCode }, text);
    const body = JSON.stringify({ code: 'UNDECLARED_ANSWER', detail: text });
    reply.code(500).header('content-length', Buffer.byteLength(body));
    return body;
  });
}

function contradictionIn(request: FastifyRequest, reply: FastifyReply, payload: unknown): string | undefined {
  const { answers, refusals } = request.routeOptions.config;
  if (answers === undefined || refusals === undefined || request.method === 'HEAD') return undefined;
  const { statusCode } = reply;
  const mediaType = String(reply.getHeader('content-type') ?? '').split(';', 1)[0];
  if (mediaType === 'application/problem+json') {
    const { code } = coded.parse(JSON.parse(String(payload)));
    return isDeclared(refusals, code) ? undefined : `the code ${code}`;
  }
  // A protocol has its own form of refusals.
  if (statusCode >= 400 && answers[statusCode] === undefined) return undefined;
  const declared = answers[statusCode];
  if (declared === undefined) return `the status ${statusCode}`;
  if (declared.mediaType !== 'application/json') return undefined;
  if (mediaType !== undefined && Object.hasOwn(declared.otherTypes ?? {}, mediaType)) return undefined;
  if (mediaType !== declared.mediaType) return `the media type ${String(mediaType)}`;
  return contradictionOf(declared, Buffer.from(payload as string | Uint8Array).toString());
}

import type { Readable } from 'node:stream';
import type { Logger } from '#kit/log/log.ts';
import { type ProblemCode, sendProblem } from '../problem.ts';
import { type CallFailure, type Exchange, ResponseCarrier } from './exchange.ts';
import { judgeFailure } from './failure.ts';
import { announcesBody, streamBody, takeBody, wholeBodyBytes } from './request-body.ts';
import { serviceHeaders } from './request-headers.ts';
import { clientHeaders } from './response-headers.ts';
import { maxInFlight, type Upstream, type Upstreams } from './upstreams.ts';

export interface ForwardOptions {
  readonly upstreams: Upstreams;
  readonly bodyLimitBytes: number;
  readonly log: Logger;
  readonly nowMs: () => number;
}

export type Forward = (exchange: Exchange) => void;

type Body = Buffer | Readable | null;

/**
 * Methods that may be sent to the same endpoint again when the first attempt found no connection (RFC 9110 9.2.2). What
 * never found a connection to one endpoint goes to the next one whatever its method: nothing of it was sent.
 */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** Sends a request to its service and the service's answer back. Bodies are limited, streamed and never parsed. */
export function createForward(options: ForwardOptions): Forward {
  return (exchange) => {
    const upstream = options.upstreams.find(exchange.service);
    if (upstream === undefined || upstream.inFlight >= maxInFlight) {
      return refuse(exchange, options, 'SERVICE_UNAVAILABLE', 'The service is not available.');
    }
    const { request } = exchange;
    if (!announcesBody(request)) return call(exchange, upstream, options, null);
    const length = Number(request.headers['content-length'] ?? Number.NaN);
    if (length > options.bodyLimitBytes) {
      return refuse(exchange, options, 'PAYLOAD_TOO_LARGE', 'The request body is too large.');
    }
    if (request.headers.expect !== undefined) exchange.response.writeContinue();
    if (length <= wholeBodyBytes) {
      return takeBody(request, (body) => {
        if (body !== undefined) call(exchange, upstream, options, body);
      });
    }
    return call(exchange, upstream, options, streamBody(request, options.bodyLimitBytes));
  };
}

function call(exchange: Exchange, upstream: Upstream, options: ForwardOptions, body: Body): void {
  const { request, response } = exchange;
  const headers = serviceHeaders(request, exchange.client, exchange.trace.traceparent);
  const method = request.method ?? 'GET';
  let attempts = 0;
  upstream.inFlight++;
  const mostAttempts = upstream.size > 1 ? upstream.size + 1 : idempotent.has(method) ? 2 : 1;
  const settle = (failure: CallFailure | undefined) => {
    const again = failure?.stage === 'connect' && attempts < mostAttempts && !response.destroyed;
    if (again && !(body !== null && 'destroyed' in body && body.destroyed)) return attempt();
    upstream.inFlight--;
    if (failure !== undefined) answerFailure(exchange, failure, options);
    return undefined;
  };
  const attempt = () => {
    attempts++;
    const pool = upstream.pool();
    const carrier = new ResponseCarrier(
      response,
      (_status, answer) => clientHeaders(answer, exchange.client.secure),
      (failure) => {
        if (failure?.stage === 'connect') upstream.moveOn(pool);
        return settle(failure);
      },
    );
    response.once('close', () => {
      if (!response.writableFinished) carrier.abort(new Error('client closed the connection'));
    });
    pool.dispatch({ path: exchange.target, method, headers, body }, carrier);
  };
  attempt();
}

function answerFailure(exchange: Exchange, failure: CallFailure, options: ForwardOptions): void {
  const { response, trace } = exchange;
  if (response.destroyed) return;
  const { code, detail } = judgeFailure(failure);
  const level = code === 'PAYLOAD_TOO_LARGE' ? 'debug' : 'warn';
  options.log[level](
    { err: failure.error, peer: exchange.service, traceId: trace.traceId, code },
    'forwarding failed',
  );
  refuse(exchange, options, code, detail);
}

function refuse(exchange: Exchange, options: ForwardOptions, code: ProblemCode, detail: string): void {
  const close = !exchange.request.complete;
  sendProblem(exchange.response, {
    code,
    detail,
    close,
    path: exchange.path,
    traceId: exchange.trace.traceId,
    nowMs: options.nowMs(),
  });
}

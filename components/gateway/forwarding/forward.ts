import { Readable } from 'node:stream';
import type { Logger } from '#kit/log/log.ts';
import { type ProblemCode, sendProblem } from '../answers/problem.ts';
import { type CallFailure, type Exchange, ResponseCarrier } from './exchange.ts';
import { isAway, isConnectionLost, judgeFailure } from './failure.ts';
import { announcesBody, streamBody, takeBody, wholeBodyBytes } from './request-body.ts';
import { serviceHeaders } from './request-headers.ts';
import { clientHeaders } from './response-headers.ts';
import { type Forwarded, maxInFlight } from './upstreams.ts';

interface ForwardOptions {
  /** Undefined for a service that is not configured. */
  readonly find: (service: string) => Forwarded | undefined;
  /** Largest request body of paths without a bound of their own. */
  readonly bodyLimitBytes: number;
  readonly log: Logger;
  readonly nowMs: () => number;
}

type Forward = (exchange: Exchange) => void;

type Body = Buffer | Readable | null;

/** Idempotent methods (RFC 9110 9.2.2): retried at the same endpoint when the first attempt found no connection. */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** Safe methods (RFC 9110 9.2.1): retried when the outcome of the first attempt is unknown. */
const safe = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Forwards a request to its service and returns the answer. Bodies are limited, streamed and never parsed. */
export function createForward(options: ForwardOptions): Forward {
  return (exchange) => {
    const upstream = options.find(exchange.service);
    if (upstream === undefined || upstream.inFlight >= maxInFlight) {
      return refuse(exchange, options, 'SERVICE_UNAVAILABLE', 'The service is not available.');
    }
    const { request, bodyLimitBytes = options.bodyLimitBytes } = exchange;
    if (!announcesBody(request)) return call(exchange, upstream, options, null);
    const length = Number(request.headers['content-length'] ?? Number.NaN);
    if (length > bodyLimitBytes) {
      return refuse(exchange, options, 'PAYLOAD_TOO_LARGE', 'The request body is too large.');
    }
    if (request.headers.expect !== undefined) exchange.response.writeContinue();
    if (length <= wholeBodyBytes) {
      return takeBody(request, (body) => {
        if (body !== undefined) call(exchange, upstream, options, body);
      });
    }
    return call(exchange, upstream, options, streamBody(request, bodyLimitBytes));
  };
}

function call(exchange: Exchange, upstream: Forwarded, options: ForwardOptions, body: Body): void {
  const { request, response } = exchange;
  const { outside } = upstream;
  const given = serviceHeaders(request, exchange.client, exchange.trace.traceparent);
  const headers = outside === undefined ? given : outside.requestHeaders(given);
  const method = request.method ?? 'GET';
  const mostAttempts = upstream.size > 1 ? upstream.size + 1 : 2;
  let attempts = 0;
  let carrier: ResponseCarrier | undefined;
  upstream.inFlight++;
  response.once('close', () => {
    if (!response.writableFinished) carrier?.abort(new Error('client closed the connection'));
  });
  const settle = (failure: CallFailure | undefined) => {
    if (failure !== undefined && attempts < mostAttempts && !response.destroyed) {
      if (mayRepeat(failure, { method, body, hasOthers: upstream.size > 1 })) return attempt();
    }
    upstream.inFlight--;
    if (failure !== undefined) answerFailure(exchange, failure, options);
    return undefined;
  };
  const attempt = () => {
    attempts++;
    const target = upstream.current();
    carrier = new ResponseCarrier(response, {
      headersOf: (answer) =>
        clientHeaders(outside?.answerHeaders(answer) ?? answer, exchange.client.secure, exchange.path),
      asksElsewhere: () => {
        // a request that cannot be retried fails, but later ones use the next endpoint
        upstream.leave(target);
        return attempts < mostAttempts && isWhole(body);
      },
      settle: (failure) => {
        if (failure !== undefined && isAway(failure)) upstream.leave(target);
        return settle(failure);
      },
    });
    target.pool().dispatch({ path: exchange.target, method, headers, body }, carrier);
  };
  attempt();
}

interface Repeatable {
  readonly method: string;
  readonly body: Body;
  readonly hasOthers: boolean;
}

/**
 * A request that found no connection to one endpoint is sent to the next one whatever its method, and so is one that an
 * endpoint refused with the statement that nothing was done. A request that was sent is retried only when its method is
 * safe.
 */
function mayRepeat(failure: CallFailure, { method, body, hasOthers }: Repeatable): boolean {
  switch (failure.stage) {
    case 'connect':
      return (hasOthers || idempotent.has(method)) && !(body instanceof Readable && body.destroyed);
    case 'request':
      return safe.has(method) && isWhole(body) && isConnectionLost(failure);
    case 'refused':
      return true;
    case 'response':
      return false;
  }
}

/** An absent or buffered body can be sent again. */
function isWhole(body: Body): boolean {
  return !(body instanceof Readable);
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

import type { Logger } from '#kit/log/log.ts';
import { type ProblemCode, sendProblem } from '../answers/problem.ts';
import { type CallFailure, type Exchange, ResponseCarrier } from './exchange.ts';
import { judgeFailure } from './failure.ts';
import { type HeldCalls, heldProblems } from './held-calls.ts';
import { announcesBody } from './request-body.ts';
import { serviceHeaders } from './request-headers.ts';
import { clientHeaders } from './response-headers.ts';
import type { Upstream, Upstreams } from './upstreams.ts';

interface HoldOptions {
  readonly upstreams: Upstreams;
  readonly heldCalls: HeldCalls;
  /** Longest time a client may read nothing of a stream while data waits. */
  readonly stalledMs: number;
  readonly log: Logger;
  readonly nowMs: () => number;
}

type Hold = (exchange: Exchange) => void;

/**
 * Forwards a GET to a hub: an event stream, or a poll that the service answers when it has something to tell. Nothing is
 * buffered, and a call that was sent is not repeated: its connection at the service may be gone, and the client
 * reconnects.
 */
export function createHold(options: HoldOptions): Hold {
  return (exchange) => {
    const { request, response, client } = exchange;
    if (announcesBody(request))
      return refuse(exchange, options, 'INVALID_REQUEST', 'A GET has no body here.');
    const upstream = options.upstreams.find(exchange.service);
    if (upstream === undefined) {
      return refuse(exchange, options, 'SERVICE_UNAVAILABLE', 'The service is not available.');
    }
    let abort = (): void => undefined;
    const held = options.heldCalls.take(client.clientAddress, () => {
      endCall(exchange, options);
      abort();
    });
    if (typeof held === 'string') {
      const { code, detail } = heldProblems[held];
      return refuse(exchange, options, code, detail);
    }
    response.once('close', () => held.release());
    abort = call(exchange, upstream, options);
    return undefined;
  };
}

/** A stream that has begun breaks off; a poll is refused. Either makes the client reconnect. */
function endCall(exchange: Exchange, options: HoldOptions): void {
  const { response } = exchange;
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.shouldKeepAlive = false;
  refuse(exchange, options, 'SERVICE_UNAVAILABLE', 'The gateway is stopping.');
}

/** Returns the function that aborts the call. */
function call(exchange: Exchange, upstream: Upstream, options: HoldOptions): () => void {
  const { request, response, client, trace, target: path } = exchange;
  const headers = serviceHeaders(request, client, trace.traceparent);
  const { stalledMs } = options;
  let attempts = 0;
  let isSettled = false;
  let carrier: ResponseCarrier | undefined;
  const abort = () => {
    if (!isSettled) carrier?.abort(new Error('the call was ended'));
  };
  response.once('close', abort);
  const attempt = () => {
    attempts += 1;
    const mayRepeat = attempts < 2;
    carrier = new ResponseCarrier(response, {
      headersOf: (answer) => clientHeaders(answer, client.secure, exchange.path),
      asksElsewhere: () => mayRepeat,
      settle: (failure) => {
        const isOver = failure === undefined || response.destroyed || response.writableEnded;
        if (!isOver && mayRepeat && isUndone(failure)) return attempt();
        isSettled = true;
        if (!isOver) answerFailure(exchange, failure, options);
        return undefined;
      },
      streams: { stalledMs },
    });
    upstream.current().heldPool().dispatch({ path, method: 'GET', headers, body: null }, carrier);
  };
  attempt();
  return abort;
}

function isUndone({ stage }: CallFailure): boolean {
  return stage === 'connect' || stage === 'refused';
}

function answerFailure(exchange: Exchange, failure: CallFailure, options: HoldOptions): void {
  const { code, detail } = judgeFailure(failure);
  const { service: peer, trace } = exchange;
  // a replica that stops breaks off its streams
  const level = failure.stage === 'response' ? 'debug' : 'warn';
  options.log[level]({ err: failure.error, peer, traceId: trace.traceId, code }, 'a call to a hub failed');
  refuse(exchange, options, code, detail);
}

function refuse(exchange: Exchange, options: HoldOptions, code: ProblemCode, detail: string): void {
  const { request, response, path, trace } = exchange;
  const close = !request.complete;
  const nowMs = options.nowMs();
  sendProblem(response, { code, detail, close, path, traceId: trace.traceId, nowMs });
}

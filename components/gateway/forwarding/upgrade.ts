import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { gatewayProblems, type ProblemCode, rawProblem } from '../answers/problem.ts';
import { endConnection, rawHead } from '../answers/raw-answer.ts';
import { securityHeaders } from '../answers/security-headers.ts';
import { gatewayError } from '../errors.ts';
import type { ClientFacts } from './client-address.ts';
import type { CallFailure } from './exchange.ts';
import { judgeFailure } from './failure.ts';
import { judgeSwitch, switchHeaders } from './handshake.ts';
import { type HeldCalls, heldProblems } from './held-calls.ts';
import { handshakeHeaders } from './request-headers.ts';
import { requestUpgrade, type UpgradeAnswer } from './request-upgrade.ts';
import { clientHeaders } from './response-headers.ts';
import type { TraceStep } from './trace.ts';
import type { Upstream } from './upstreams.ts';

/** An opening handshake that `judgeHandshake` accepted, with its connection. */
export interface Handshake {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes received after the request's head. */
  readonly head: Buffer;
  readonly target: string;
  readonly path: string;
  readonly service: string;
  readonly client: ClientFacts;
  readonly trace: TraceStep;
}

export interface Tunnels {
  /**
   * Sends an opening handshake to the service and joins the two connections once the service has agreed to WebSocket.
   * Any other answer is sent to the client as the last one of its connection.
   *
   * @returns the status that the client got; 499 when it disconnected before.
   */
  open(handshake: Handshake, upstream: Upstream | undefined): Promise<number>;
}

interface TunnelOptions {
  readonly log: Logger;
  readonly nowMs: () => number;
  /** Counts tunnels, including pending handshakes. */
  readonly heldCalls: HeldCalls;
  /** Longest time one side of a tunnel may read nothing while data waits. */
  readonly stalledMs: number;
  /** Time from the handshake to the end of the service's answer. */
  readonly deadlineMs: number;
}

/** Logged status of a request whose client disconnected before the answer. */
const clientGone = 499;

/** WebSocket pass-through. No byte of a client reaches a service outside of a request or an agreed WebSocket. */
export function createTunnels(options: TunnelOptions): Tunnels {
  return {
    open: async (handshake, upstream) => {
      const { socket, client } = handshake;
      socket.on('error', () => socket.destroy());
      if (upstream === undefined)
        return refuse(handshake, options, 'SERVICE_UNAVAILABLE', 'The service is not available.');
      const held = options.heldCalls.take(client.clientAddress, () => socket.destroy());
      if (typeof held === 'string') {
        const { code, detail } = heldProblems[held];
        return refuse(handshake, options, code, detail);
      }
      socket.once('close', () => held.release());
      if (socket.destroyed) held.release();
      if (handshake.head.length > 0) return refuseEarlyBytes(handshake, options);
      const outcome = await ask(handshake, upstream, options.deadlineMs);
      return settle(handshake, options, outcome);
    },
  };
}

type Outcome = UpgradeAnswer | ({ readonly kind: 'failed' } & CallFailure);

/** The service's answer, or the failure: the service failed, or the client did not wait. */
async function ask(handshake: Handshake, upstream: Upstream, deadlineMs: number): Promise<Outcome> {
  const { request, socket, client, trace, target } = handshake;
  const abort = new AbortController();
  const stop = (error: Error) => abort.abort(error);
  const timer = setTimeout(() => stop(noAnswer()), deadlineMs);
  const unwatch = watchClient(socket, stop);
  let stage: CallFailure['stage'] = 'connect';
  try {
    const service = await upstream.current().openSocket();
    stage = 'request';
    const headers = handshakeHeaders(request, client, trace.traceparent);
    return await requestUpgrade(service, { target, headers, signal: abort.signal });
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error('the handshake failed', { cause: thrown });
    return { kind: 'failed', stage, error };
  } finally {
    clearTimeout(timer);
    unwatch();
  }
}

function noAnswer(): AppError {
  return gatewayError('GATEWAY_TIMEOUT', 'the service did not answer the handshake in time');
}

/**
 * Calls back when a client sends anything before its handshake is answered (RFC 6455 4.1: it must wait), or
 * disconnects. The returned function stops watching and reading.
 */
function watchClient(socket: Duplex, stop: (error: Error) => void): () => void {
  const early = () => stop(gatewayError('INVALID_REQUEST', 'bytes before the answer to the handshake'));
  const gone = () => stop(gatewayError('CLIENT_GONE', 'the client closed the connection'));
  socket.on('data', early);
  socket.on('end', gone);
  socket.on('close', gone);
  return () => {
    socket.off('data', early);
    socket.off('end', gone);
    socket.off('close', gone);
    socket.pause();
  };
}

function settle(handshake: Handshake, options: TunnelOptions, outcome: Outcome): number {
  const { request, socket } = handshake;
  if (outcome.kind === 'failed') return answerFailure(handshake, options, outcome);
  if (outcome.kind === 'answered') return passOn(handshake, outcome);
  const fault = judgeSwitch(outcome.headers, request.headers);
  if (fault !== undefined) {
    outcome.socket.destroy();
    const error = gatewayError('BAD_GATEWAY', `no agreement to WebSocket: ${fault}`);
    return answerFailure(handshake, options, { stage: 'request', error });
  }
  if (socket.destroyed) {
    outcome.socket.destroy();
    return clientGone;
  }
  socket.write(rawHead(101, [...switchHeaders(outcome.headers), ...securityHeaders]));
  if (outcome.head.length > 0) socket.write(outcome.head);
  join(socket, outcome.socket, options.stalledMs);
  return 101;
}

/** Statuses whose answers have no body (RFC 9110 15.3.5, 15.4.5). */
const bodiless = new Set([204, 304]);

/**
 * Sends the service's refusal, framed anew: it names what is missing (a token, a subprotocol) better than the gateway
 * could.
 */
function passOn({ client, socket }: Handshake, answer: Extract<UpgradeAnswer, { kind: 'answered' }>): number {
  const { status } = answer;
  const { 'content-length': _length, ...kept } = answer.headers;
  const headers = clientHeaders(kept, client.secure, '');
  const body = bodiless.has(status) ? Buffer.alloc(0) : answer.body;
  if (!bodiless.has(status)) headers.push('content-length', String(body.length));
  headers.push('connection', 'close');
  endConnection(socket, Buffer.concat([rawHead(status, headers), body]));
  return status;
}

/** Time for the second direction of a tunnel to end after the first. */
const halfClosedMs = 5000;

function join(client: Duplex, service: Duplex, stalledMs: number): void {
  const destroy = () => {
    client.destroy();
    service.destroy();
  };
  for (const [from, to] of [
    [client, service],
    [service, client],
  ] as const) {
    from.on('error', destroy);
    from.once('end', () => setTimeout(destroy, halfClosedMs).unref());
    // data sent before an orderly end is still in transit
    from.once('close', () => {
      if (!from.readableEnded) destroy();
    });
    watchStall(from, to, { stalledMs, destroy });
    from.pipe(to);
  }
  if (client.destroyed || service.destroyed) destroy();
}

interface Stall {
  readonly stalledMs: number;
  readonly destroy: () => void;
}

/** Destroys a tunnel when `to` reads nothing while data from `from` waits for it. */
function watchStall(from: Duplex, to: Duplex, { stalledMs, destroy }: Stall): void {
  let timer: NodeJS.Timeout | undefined;
  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  from.on('pause', () => {
    if (to.writableNeedDrain) timer ??= setTimeout(destroy, stalledMs);
  });
  to.on('drain', stop);
  to.once('close', stop);
}

function answerFailure(handshake: Handshake, options: TunnelOptions, failure: CallFailure): number {
  const { error } = failure;
  if (isAppError(error, 'gone')) {
    handshake.socket.destroy();
    return clientGone;
  }
  if (isAppError(error, 'invalid')) return refuseEarlyBytes(handshake, options);
  const { code, detail } = judgeFailure(failure);
  const { traceId } = handshake.trace;
  options.log.warn(
    { err: error, peer: handshake.service, traceId, code },
    'opening a WebSocket tunnel failed',
  );
  return refuse(handshake, options, code, detail);
}

function refuseEarlyBytes(handshake: Handshake, options: TunnelOptions): number {
  const detail = 'A client must not send data between a WebSocket handshake and its answer.';
  return refuse(handshake, options, 'INVALID_REQUEST', detail);
}

function refuse(handshake: Handshake, options: TunnelOptions, code: ProblemCode, detail: string): number {
  const { path, socket } = handshake;
  const { traceId } = handshake.trace;
  endConnection(socket, rawProblem({ code, detail, path, traceId, nowMs: options.nowMs() }));
  return gatewayProblems[code].status;
}

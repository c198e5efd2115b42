import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '#kit/clock/clock.ts';
import { gatewayProblems, type ProblemCode, rawProblem, sendProblem } from './answers/problem.ts';
import { type Connections, createConnections } from './connections.ts';
import type { ReadClient } from './forwarding/client-address.ts';
import type { Exchange } from './forwarding/exchange.ts';
import { asksForWebSocket, type HandshakeFault, judgeHandshake } from './forwarding/handshake.ts';
import type { StepTrace, TraceStep } from './forwarding/trace.ts';
import type { Handshake } from './forwarding/upgrade.ts';
import type { Observe } from './observe.ts';
import type { Matcher } from './routing/match.ts';
import { judgeQueryToken } from './routing/query-token.ts';
import { PAGES, type RouteRule } from './routing/table.ts';
import { judgeTarget } from './routing/target.ts';

/** Handlers of requests that are known to be public. */
interface Destinations {
  forward(exchange: Exchange): void;
  /** Forwards a GET to a hub: an event stream or a held poll. */
  hold(exchange: Exchange): void;
  /** Answers one of the gateway's own pages; `target` is the internal path of the page. */
  serve(request: IncomingMessage, response: ServerResponse, target: string): void;
  /** Answers a handshake; resolves with the status. */
  tunnel(handshake: Handshake): Promise<number>;
}

interface ListenerOptions {
  readonly match: Matcher;
  readonly readClient: ReadClient;
  readonly stepTrace: StepTrace;
  readonly observe: Observe;
  readonly destinations: Destinations;
  readonly clock: Clock;
}

/** Methods that are forwarded. TRACE would echo credentials; CONNECT is for proxies of another kind. */
const carriedMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Methods of hubs: negotiation and messages, streams and polls, the end of a connection. */
const hubMethods = ['GET', 'POST', 'DELETE'];

/** Methods of pages. */
const ownMethods = ['GET', 'HEAD'];

const limits = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 15_000,
  requestTimeout: 120_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5000,
  // checked with the target, so that the refusal is a problem answer like any other
  requireHostHeader: false,
  insecureHTTPParser: false,
} as const;

interface Refused {
  readonly code: ProblemCode;
  readonly detail: string;
  readonly path: string;
  readonly allow?: readonly string[];
}

type RequestDecision =
  | { readonly kind: 'route'; readonly rule: RouteRule; readonly path: string; readonly target: string }
  | ({ readonly kind: 'refuse' } & Refused);

/** The public listener: classifies the target, finds the route, calls its handler. The body is not read here. */
export function createListener(options: ListenerOptions): Server {
  const connections = createConnections();
  const server = createServer({
    ...limits,
    shouldUpgradeCallback: (request) => judgeUpgrade(options, connections, request) === 'upgrade',
  });
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    // the pending answer is the last of its connection
    if (connections.isEnding(request.socket)) return;
    connections.hold(request.socket, response);
    receive(options, connections, request, response);
  };
  server.on('request', handle);
  server.on('checkContinue', handle);
  server.on('checkExpectation', handle);
  server.on('upgrade', (request, socket, head) => void openTunnel(options, { request, socket, head }));
  server.on('clientError', (error, socket) => {
    // bytes after a request whose answer is the last one of its connection
    if (socket instanceof Socket && connections.isEnding(socket)) return;
    refuseConnection(options, error, socket);
  });
  return server;
}

/**
 * `ignore`: an ordinary request, or one to a route that is no hub, which is answered as if it had not requested an
 * upgrade (RFC 9110 7.8). `upgrade`: a handshake that is forwarded to the service. Otherwise the reason for the
 * refusal.
 */
function judgeUpgrade(
  options: ListenerOptions,
  connections: Connections,
  request: IncomingMessage,
): 'ignore' | 'upgrade' | HandshakeFault {
  if (!asksForWebSocket(request.headers)) return 'ignore';
  const decision = judgeRequest(request, options.match);
  if (decision.kind !== 'route' || decision.rule.hub !== true) return 'ignore';
  const fault = judgeHandshake(request);
  if (fault !== undefined) return fault;
  const { socket } = request;
  if (!connections.isBusy(socket) && !connections.isEnding(socket)) return 'upgrade';
  return {
    code: 'INVALID_REQUEST',
    detail: 'A WebSocket handshake must wait until earlier requests are answered.',
  };
}

async function openTunnel(
  options: ListenerOptions,
  { request, socket, head }: Pick<Handshake, 'request' | 'socket' | 'head'>,
): Promise<void> {
  const startedAt = performance.now();
  const decision = judgeRequest(request, options.match);
  const service = decision.kind === 'route' ? serviceOf(decision.rule) : undefined;
  if (decision.kind !== 'route' || service === undefined) {
    socket.destroy();
    return;
  }
  const trace = options.stepTrace('GET', request.headers['traceparent']);
  const client = options.readClient(request);
  const { target, path } = decision;
  const handshake = { request, socket, head, target, path, service, client, trace };
  const status = await options.destinations.tunnel(handshake);
  trace.end(status);
  const { clientAddress } = client;
  const { traceId } = trace;
  const isHeld = false;
  options.observe({ method: 'GET', path, peer: service, status, clientAddress, traceId, startedAt, isHeld });
}

function receive(
  options: ListenerOptions,
  connections: Connections,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const startedAt = performance.now();
  const method = request.method ?? '';
  const decision = judgeRequest(request, options.match);
  const trace = options.stepTrace(method, request.headers['traceparent']);
  const client = options.readClient(request);
  const peer = decision.kind === 'route' ? decision.rule.service : 'none';
  const isHeld = decision.kind === 'route' && decision.rule.hub === true && method === 'GET';
  response.once('close', () => {
    const status = response.headersSent ? response.statusCode : 499;
    trace.end(status);
    const { clientAddress } = client;
    const { traceId } = trace;
    const { path } = decision;
    options.observe({ method, path, peer, status, clientAddress, traceId, startedAt, isHeld });
  });
  const upgrade = judgeUpgrade(options, connections, request);
  if (asksForWebSocket(request.headers)) {
    connections.end(request.socket);
    response.shouldKeepAlive = false;
  }
  if (decision.kind === 'refuse') {
    refuse(options, response, decision, trace);
    return;
  }
  const { target, path, rule } = decision;
  const service = serviceOf(rule);
  const { destinations } = options;
  if (typeof upgrade === 'object') refuse(options, response, { ...upgrade, path }, trace);
  else if (service === undefined) destinations.serve(request, response, target);
  else {
    const { bodyLimitBytes } = rule;
    const exchange = { request, response, target, path, service, bodyLimitBytes, client, trace };
    if (isHeld) destinations.hold(exchange);
    else destinations.forward(exchange);
  }
}

function judgeRequest(request: IncomingMessage, match: Matcher): RequestDecision {
  const target = judgeTarget(request.url ?? '');
  const { path } = target;
  if (target.kind === 'malformed' || hostCount(request.rawHeaders) !== 1) {
    return { kind: 'refuse', code: 'INVALID_REQUEST', detail: 'The request is malformed.', path };
  }
  const rule = target.kind === 'clean' ? match(path) : undefined;
  if (target.kind !== 'clean' || rule === undefined) {
    return { kind: 'refuse', code: 'NOT_FOUND', detail: 'The resource does not exist.', path };
  }
  const allow = methodsOf(rule);
  if (!allow.includes(request.method ?? '')) {
    return {
      kind: 'refuse',
      code: 'METHOD_NOT_ALLOWED',
      detail: 'The method is not allowed here.',
      path,
      allow,
    };
  }
  const detail = judgeQueryToken(target.search, rule.hub === true);
  if (detail !== undefined) return { kind: 'refuse', code: 'INVALID_REQUEST', detail, path };
  return { kind: 'route', rule, path, target: (rule.rewrite ?? path) + target.search };
}

function methodsOf(rule: RouteRule): readonly string[] {
  if (rule.service === 'gateway' || rule.service === PAGES) return ownMethods;
  return rule.hub === true ? hubMethods : carriedMethods;
}

/** Servers differ in how they treat two hosts; Node keeps the first and hides the rest. */
function hostCount(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
}

function serviceOf(rule: RouteRule): string | undefined {
  return rule.service === 'gateway' ? undefined : rule.service;
}

function refuse(
  options: ListenerOptions,
  response: ServerResponse,
  refused: Refused,
  trace: TraceStep,
): void {
  const { code, detail, path, allow } = refused;
  sendProblem(response, {
    code,
    detail,
    path,
    close: code === 'INVALID_REQUEST' || !response.req.complete || !response.shouldKeepAlive,
    traceId: trace.traceId,
    nowMs: options.clock.nowMs(),
    ...(allow !== undefined && { allow }),
  });
}

const connectionProblems: Readonly<Record<string, { readonly code: ProblemCode; readonly detail: string }>> =
  {
    HPE_HEADER_OVERFLOW: { code: 'HEADERS_TOO_LARGE', detail: 'The request headers are too large.' },
    ERR_HTTP_REQUEST_TIMEOUT: { code: 'REQUEST_TIMEOUT', detail: 'The request took too long to arrive.' },
  };

/** Answers malformed or oversized requests and closes their connection. */
function refuseConnection(options: ListenerOptions, error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const startedAt = performance.now();
  const known = connectionProblems[error.code ?? ''];
  const problem = known ?? { code: 'INVALID_REQUEST' as const, detail: 'The request is malformed.' };
  const { traceId, end } = options.stepTrace('', undefined);
  const clientAddress = socket instanceof Socket ? (socket.remoteAddress ?? '') : '';
  socket.once('finish', () => socket.destroy());
  socket.end(rawProblem({ ...problem, path: '/', traceId, nowMs: options.clock.nowMs() }));
  const { status } = gatewayProblems[problem.code];
  end(status);
  const refused = { method: '', path: '', peer: 'none', isHeld: false };
  options.observe({ ...refused, status, clientAddress, traceId, startedAt });
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '#kit/clock/clock.ts';
import type { ReadClient } from './forwarding/client-address.ts';
import type { Exchange } from './forwarding/exchange.ts';
import type { StepTrace, TraceStep } from './forwarding/trace.ts';
import type { Handshake } from './forwarding/upgrade.ts';
import type { Observe } from './observe.ts';
import { type ProblemCode, rawProblem, sendProblem } from './problem.ts';
import type { Matcher } from './routing/match.ts';
import type { RouteRule, ServiceName } from './routing/table.ts';
import { judgeTarget } from './routing/target.ts';

/** What happens to a request once it is known to be public. */
export interface Destinations {
  forward(exchange: Exchange): void;
  /** Answers one of the gateway's own pages; `target` is what the page is called inside. */
  serve(request: IncomingMessage, response: ServerResponse, target: string): void;
  tunnel(handshake: Handshake): void;
}

export interface ListenerOptions {
  readonly match: Matcher;
  readonly readClient: ReadClient;
  readonly stepTrace: StepTrace;
  readonly observe: Observe;
  readonly destinations: Destinations;
  readonly clock: Clock;
}

/** Methods that are carried. TRACE would echo credentials; CONNECT is for proxies of another kind. */
const allowedMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

const limits = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 15_000,
  requestTimeout: 120_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5000,
  requireHostHeader: true,
  insecureHTTPParser: false,
} as const;

type Verdict =
  | { readonly kind: 'route'; readonly rule: RouteRule; readonly path: string; readonly target: string }
  | { readonly kind: 'refuse'; readonly code: ProblemCode; readonly detail: string; readonly path: string };

/** The public listener: judges the target, finds the route, hands over. Nothing of the body is read here. */
export function createListener(options: ListenerOptions): Server {
  const { match, destinations } = options;
  const server = createServer({
    ...limits,
    shouldUpgradeCallback: (request) => {
      const verdict = judgeRequest(request, match);
      return verdict.kind === 'route' && verdict.rule.webSocket === true && isWebSocket(request);
    },
  });
  const handle = (request: IncomingMessage, response: ServerResponse) => receive(options, request, response);
  server.on('request', handle);
  server.on('checkContinue', handle);
  server.on('checkExpectation', handle);
  server.on('upgrade', (request, socket, head) => {
    const verdict = judgeRequest(request, match);
    const service = verdict.kind === 'route' ? serviceOf(verdict.rule) : undefined;
    if (verdict.kind !== 'route' || service === undefined) return socket.destroy();
    const trace = options.stepTrace('GET', request.headers['traceparent']);
    const client = options.readClient(request);
    const { target, path } = verdict;
    return destinations.tunnel({ request, socket, head, target, path, service, client, trace });
  });
  server.on('clientError', (error, socket) => refuseConnection(options, error, socket));
  return server;
}

function receive(options: ListenerOptions, request: IncomingMessage, response: ServerResponse): void {
  const startedAt = performance.now();
  const method = request.method ?? '';
  const verdict = judgeRequest(request, options.match);
  const trace = options.stepTrace(method, request.headers['traceparent']);
  const client = options.readClient(request);
  const peer = verdict.kind === 'route' ? verdict.rule.service : 'none';
  response.once('close', () => {
    const status = response.headersSent ? response.statusCode : 499;
    trace.end(status);
    const { clientAddress } = client;
    options.observe({
      method,
      path: verdict.path,
      peer,
      status,
      clientAddress,
      traceId: trace.traceId,
      startedAt,
    });
  });
  if (verdict.kind === 'refuse') {
    refuse(options, response, verdict, trace);
    return;
  }
  const service = serviceOf(verdict.rule);
  const { target, path } = verdict;
  if (service === undefined) options.destinations.serve(request, response, target);
  else options.destinations.forward({ request, response, target, path, service, client, trace });
}

function judgeRequest(request: IncomingMessage, match: Matcher): Verdict {
  const target = judgeTarget(request.url ?? '');
  const { path } = target;
  if (target.kind === 'malformed' || hostCount(request.rawHeaders) !== 1) {
    return { kind: 'refuse', code: 'INVALID_REQUEST', detail: 'The request is malformed.', path };
  }
  const rule = target.kind === 'clean' ? match(path) : undefined;
  if (target.kind !== 'clean' || rule === undefined) {
    return { kind: 'refuse', code: 'NOT_FOUND', detail: 'The resource does not exist.', path };
  }
  if (!allowedMethods.has(request.method ?? '')) {
    return { kind: 'refuse', code: 'METHOD_NOT_ALLOWED', detail: 'The method is not allowed here.', path };
  }
  return { kind: 'route', rule, path, target: (rule.rewrite ?? path) + target.search };
}

/** Two hosts would be read differently by different servers; Node keeps the first and hides the rest. */
function hostCount(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
}

function serviceOf(rule: RouteRule): ServiceName | undefined {
  return rule.service === 'gateway' ? undefined : rule.service;
}

function isWebSocket(request: IncomingMessage): boolean {
  return request.method === 'GET' && request.headers.upgrade?.toLowerCase() === 'websocket';
}

function refuse(
  options: ListenerOptions,
  response: ServerResponse,
  verdict: { readonly code: ProblemCode; readonly detail: string; readonly path: string },
  trace: TraceStep,
): void {
  const { code, detail, path } = verdict;
  const close = !response.req.complete;
  sendProblem(response, { code, detail, path, close, traceId: trace.traceId, nowMs: options.clock.nowMs() });
}

const connectionProblems: Readonly<Record<string, { readonly code: ProblemCode; readonly detail: string }>> =
  {
    HPE_HEADER_OVERFLOW: { code: 'HEADERS_TOO_LARGE', detail: 'The request headers are too large.' },
    ERR_HTTP_REQUEST_TIMEOUT: { code: 'REQUEST_TIMEOUT', detail: 'The request took too long to arrive.' },
  };

/** Bytes that are no request, or too many of them, get an answer and lose their connection. */
function refuseConnection(options: ListenerOptions, error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const known = connectionProblems[error.code ?? ''];
  const problem = known ?? { code: 'INVALID_REQUEST' as const, detail: 'The request is malformed.' };
  const trace = options.stepTrace('', undefined);
  socket.once('finish', () => socket.destroy());
  socket.end(rawProblem({ ...problem, path: '/', traceId: trace.traceId, nowMs: options.clock.nowMs() }));
}

import {
  request as ask,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** A call that passed through the proxy. */
export interface ProxiedCall {
  readonly method: string;
  readonly path: string;
  readonly isWatch: boolean;
}

export interface FaultyProxy {
  /** Address that clients use as API server. */
  readonly url: string;
  /** Share of calls for each kind of fault: 409 (writes only), 429 with Retry-After, 500, no answer, reset. */
  share: number;
  readonly calls: ProxiedCall[];
  /** Number of injected faults, by kind. */
  readonly faults: Map<string, number>;
  /** Calls that were repeated before their Retry-After had passed. */
  readonly early: string[];
  /** Breaks one of the open watches. */
  breakWatch(): void;
  close(): Promise<void>;
}

const RETRY_AFTER_SECONDS = 1;
const faults = ['conflict', 'too many', 'internal', 'silence', 'reset'] as const;
type Fault = (typeof faults)[number] | 'reset after';

const answers: Readonly<Partial<Record<Fault, { readonly code: number; readonly reason: string }>>> = {
  conflict: { code: 409, reason: 'Conflict' },
  'too many': { code: 429, reason: 'TooManyRequests' },
  internal: { code: 500, reason: 'InternalError' },
};

/**
 * A proxy to a real API server that injects faults into a share of the calls.
 * @param upstream address of a `kubectl proxy`, which adds TLS and credentials
 * @param draw random number in [0, 1) for each decision
 */
export async function openFaultyProxy(upstream: string, draw: () => number): Promise<FaultyProxy> {
  const watches = new Set<ServerResponse>();
  const notBefore = new Map<string, number>();
  const server = createServer((incoming, response) => {
    const call = callOf(incoming, upstream);
    proxy.calls.push(call);
    const fault = chooseFault(call, proxy.share, draw);
    if (fault !== undefined) proxy.faults.set(fault, (proxy.faults.get(fault) ?? 0) + 1);
    checkRetryAfter(call, fault, { notBefore, early: proxy.early });
    if (fault === 'silence') return;
    if (fault === 'reset') return void response.destroy();
    const refusal = fault === undefined ? undefined : answers[fault];
    if (refusal !== undefined) return refuse(response, refusal);
    if (call.isWatch) trackWatch(watches, response);
    forward(upstream, incoming, response, fault === 'reset after');
  });
  const proxy: FaultyProxy = {
    url: await listen(server),
    share: 0,
    calls: [],
    faults: new Map(),
    early: [],
    breakWatch: () => {
      const open = [...watches];
      open[Math.floor(draw() * open.length)]?.destroy();
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}

function callOf({ method = 'GET', url = '/' }: IncomingMessage, upstream: string): ProxiedCall {
  const { pathname, searchParams } = new URL(url, upstream);
  return { method, path: pathname, isWatch: searchParams.get('watch') === 'true' };
}

function chooseFault({ method }: ProxiedCall, share: number, draw: () => number): Fault | undefined {
  const fault = share === 0 ? undefined : faults[Math.floor(draw() / share)];
  if (fault === 'conflict' && method === 'GET') return undefined;
  return fault === 'reset' && draw() < 0.5 ? 'reset after' : fault;
}

interface RetryLog {
  readonly notBefore: Map<string, number>;
  readonly early: string[];
}

/** Records a call that is repeated too early. A POST is exempt: its path is the collection, so another creation may follow. */
function checkRetryAfter(
  { method, path, isWatch }: ProxiedCall,
  fault: Fault | undefined,
  { notBefore, early }: RetryLog,
): void {
  if (method === 'POST') return;
  const name = `${method} ${path}${isWatch ? ' watch' : ''}`;
  const now = performance.now();
  if (now < (notBefore.get(name) ?? 0)) early.push(name);
  if (fault === 'too many') notBefore.set(name, now + RETRY_AFTER_SECONDS * 1_000);
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function trackWatch(watches: Set<ServerResponse>, response: ServerResponse): void {
  watches.add(response);
  response.once('close', () => watches.delete(response));
}

function refuse(
  response: ServerResponse,
  { code, reason }: { readonly code: number; readonly reason: string },
): void {
  response.writeHead(code, {
    'content-type': 'application/json',
    'retry-after': String(RETRY_AFTER_SECONDS),
  });
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    reason,
    message: 'injected fault',
    code,
  };
  response.end(JSON.stringify(status));
}

function forward(
  upstream: string,
  incoming: IncomingMessage,
  response: ServerResponse,
  isLost: boolean,
): void {
  const { method, url = '/', headers } = incoming;
  const { host: _, ...others } = headers;
  const outgoing = ask(new URL(url, upstream), { method, headers: others, agent: false }, (answer) => {
    if (isLost) {
      answer.resume();
      return void response.destroy();
    }
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
    answer.once('error', () => response.destroy());
  });
  outgoing.once('error', () => response.destroy());
  response.once('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isRecord } from '../resource.ts';
import { answer, type Incoming, statusBody } from './answer.ts';
import { ClusterState, type Happening, Refused, type Target } from './cluster-state.ts';

/** A call that arrived. */
export interface Arrival extends Incoming {
  readonly isWatch: boolean;
  readonly headers: IncomingMessage['headers'];
  /** Of the connection, so that a test can count connections. */
  readonly port: number;
  readonly atMs: number;
}

/** What the server does instead of its work, or after it. */
export type Fault =
  | { readonly status: number; readonly reason?: string; readonly headers?: Record<string, string> }
  | 'reset'
  | 'reset-after'
  | 'hang'
  | 'garbage';

/** An open watch, at the mercy of a test. */
export interface OpenWatch {
  readonly arrival: Arrival;
  /** `end`: in good order; `reset`: the connection breaks; `truncate`: half a line, then the end; `freeze`: nothing ever again. */
  break(how: 'end' | 'reset' | 'truncate' | 'freeze'): void;
  /** An ERROR event; the stream stays open, as real servers leave it. */
  refuse(code: number, reason: string): void;
  bookmark(): void;
}

export interface ApiServer {
  readonly state: ClusterState;
  readonly url: string;
  readonly arrivals: Arrival[];
  readonly watches: ReadonlySet<OpenWatch>;
  /** Decides about each call; undefined lets it pass, and a promise holds it until then. */
  intercept: (arrival: Arrival) => Fault | undefined | Promise<Fault | undefined>;
  close(): Promise<void>;
}

/** An API server of a test's own on loopback: enough of the real one to break it in every way. */
export async function startApiServer(state = new ClusterState()): Promise<ApiServer> {
  const watches = new Set<OpenWatch>();
  const arrivals: Arrival[] = [];
  const server = createServer((request, response) => void serve(request, response));
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const arrival = await read(request);
    arrivals.push(arrival);
    const fault = await api.intercept(arrival);
    if (fault !== undefined && misbehave(fault, response)) return;
    if (arrival.isWatch) return openWatch(state, arrival, response, watches);
    const { status, body } = respond(state, arrival);
    if (fault === 'reset-after') return void response.destroy();
    send(response, status, body);
  };
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const api: ApiServer = {
    state,
    url: `http://127.0.0.1:${port}`,
    arrivals,
    watches,
    intercept: () => undefined,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return api;
}

async function read(request: IncomingMessage): Promise<Arrival> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(Buffer.from(piece));
  const text = Buffer.concat(pieces).toString();
  const url = new URL(request.url ?? '/', 'http://server');
  const query = Object.fromEntries(url.searchParams);
  return {
    method: request.method ?? 'GET',
    target: parseTarget(url.pathname),
    query,
    contentType: request.headers['content-type'] ?? '',
    body: text === '' ? undefined : JSON.parse(text),
    isWatch: query['watch'] === 'true',
    headers: request.headers,
    port: request.socket.remotePort ?? 0,
    atMs: performance.now(),
  };
}

function parseTarget(path: string): Target {
  const parts = path.split('/').slice(1).map(decodeURIComponent);
  const [group, version] = parts[0] === 'api' ? ['', parts[1]] : [parts[1], parts[2]];
  let rest = parts.slice(parts[0] === 'api' ? 2 : 3);
  let namespace: string | undefined;
  if (rest[0] === 'namespaces' && rest.length > 2) {
    namespace = rest[1];
    rest = rest.slice(2);
  }
  const [plural = '', name, subresource] = rest;
  return { group: group ?? '', version: version ?? '', plural, namespace, name, subresource };
}

/** Whether the fault is the whole answer. */
function misbehave(fault: Fault, response: ServerResponse): boolean {
  if (fault === 'reset') response.destroy();
  else if (fault === 'garbage') response.end('<html>');
  else if (isRecord(fault)) {
    const { status, reason = 'InternalError', headers = {} } = fault;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    send(response, status, statusBody(new Refused(status, reason)));
  }
  return fault !== 'reset-after';
}

function respond(state: ClusterState, arrival: Arrival): { status: number; body: unknown } {
  try {
    const body = answer(state, arrival);
    const wantsPartial = arrival.headers.accept?.includes('PartialObjectMetadataList') === true;
    return { status: 200, body: wantsPartial ? partialList(body) : body };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { status: error.status, body: statusBody(error) };
  }
}

function partial(object: unknown): unknown {
  const kind = 'PartialObjectMetadata';
  return { apiVersion: 'meta.k8s.io/v1', kind, metadata: isRecord(object) ? object['metadata'] : undefined };
}

function partialList(body: unknown): unknown {
  return isRecord(body) && Array.isArray(body['items'])
    ? { ...body, items: body['items'].map(partial) }
    : body;
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.statusCode = status;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body));
}

function openWatch(
  state: ClusterState,
  arrival: Arrival,
  response: ServerResponse,
  open: Set<OpenWatch>,
): void {
  const isPartial = arrival.headers.accept?.includes('PartialObjectMetadata') === true;
  let isFrozen = false;
  const write = (type: string, object: unknown) => {
    if (!isFrozen) response.write(`${JSON.stringify({ type, object })}\n`);
  };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  const forget = state.watch(
    arrival.target,
    Number(arrival.query['resourceVersion']),
    ({ type, object }: Happening) => write(type, isPartial ? partial(object) : object),
  );
  const watch: OpenWatch = {
    arrival,
    break: (how) => {
      forget?.();
      open.delete(watch);
      if (how === 'freeze') isFrozen = true;
      else if (how === 'reset') response.destroy();
      else response.end(how === 'truncate' ? '{"type":"MODIFIED","object":{"metadata":{"na' : undefined);
    },
    refuse: (code, reason) => write('ERROR', statusBody(new Refused(code, reason))),
    bookmark: () =>
      write('BOOKMARK', {
        apiVersion: 'v1',
        kind: 'Any',
        metadata: { resourceVersion: String(state.version) },
      }),
  };
  if (forget === undefined) {
    watch.refuse(410, 'Expired');
    response.end();
    return;
  }
  open.add(watch);
  response.once('close', () => {
    forget();
    open.delete(watch);
  });
}

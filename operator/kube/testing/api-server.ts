import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isRecord } from '../resource.ts';
import { answer, type Incoming, statusBody } from './answer.ts';
import { ClusterState, type StateEvent, StatusError, type Target } from './cluster-state.ts';

/** A request that the server received. */
export interface ReceivedRequest extends Incoming {
  readonly isWatch: boolean;
  readonly headers: IncomingMessage['headers'];
  /** Client port, so that a test can count connections. */
  readonly port: number;
  readonly atMs: number;
}

/** A fault instead of the response, or after the request was carried out. */
export type Fault =
  | { readonly status: number; readonly reason?: string; readonly headers?: Record<string, string> }
  | 'reset'
  | 'reset-after'
  | 'hang'
  | 'garbage';

/** An open watch that a test controls. */
export interface OpenWatch {
  readonly arrival: ReceivedRequest;
  /** `end`: closed normally; `reset`: the connection breaks; `truncate`: half a line, then the end; `freeze`: no more data. */
  break(how: 'end' | 'reset' | 'truncate' | 'freeze'): void;
  /** Sends an ERROR event; the stream stays open, as on real servers. */
  refuse(code: number, reason: string): void;
  bookmark(): void;
}

export interface ApiServer {
  readonly state: ClusterState;
  readonly url: string;
  readonly requests: ReceivedRequest[];
  readonly watches: ReadonlySet<OpenWatch>;
  /** Chooses a fault for each request; undefined for none, a promise delays the request. */
  intercept: (arrival: ReceivedRequest) => Fault | undefined | Promise<Fault | undefined>;
  close(): Promise<void>;
}

/** A fake API server on loopback with fault injection. */
export async function startApiServer(state = new ClusterState()): Promise<ApiServer> {
  const watches = new Set<OpenWatch>();
  const requests: ReceivedRequest[] = [];
  const server = createServer((request, response) => void serve(request, response));
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const arrival = await read(request);
    requests.push(arrival);
    const fault = await api.intercept(arrival);
    if (fault !== undefined && injectFault(fault, response)) return;
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
    requests,
    watches,
    intercept: () => undefined,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return api;
}

async function read(request: IncomingMessage): Promise<ReceivedRequest> {
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
  let remaining = parts.slice(parts[0] === 'api' ? 2 : 3);
  let namespace: string | undefined;
  if (remaining[0] === 'namespaces' && remaining.length > 2) {
    namespace = remaining[1];
    remaining = remaining.slice(2);
  }
  const [plural = '', name, subresource] = remaining;
  return { group: group ?? '', version: version ?? '', plural, namespace, name, subresource };
}

/** Injects a fault; returns whether the fault replaces the response. */
function injectFault(fault: Fault, response: ServerResponse): boolean {
  if (fault === 'reset') response.destroy();
  else if (fault === 'garbage') response.end('<html>');
  else if (isRecord(fault)) {
    const { status, reason = 'InternalError', headers = {} } = fault;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    send(response, status, statusBody(new StatusError(status, reason)));
  }
  return fault !== 'reset-after';
}

function respond(state: ClusterState, arrival: ReceivedRequest): { status: number; body: unknown } {
  try {
    const body = answer(state, arrival);
    const wantsPartial = arrival.headers.accept?.includes('PartialObjectMetadataList') === true;
    return { status: 200, body: wantsPartial ? partialList(body) : body };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
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
  arrival: ReceivedRequest,
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
    ({ type, object }: StateEvent) => write(type, isPartial ? partial(object) : object),
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
    refuse: (code, reason) => write('ERROR', statusBody(new StatusError(code, reason))),
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

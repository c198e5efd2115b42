import {
  request as ask,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** What went through the door. */
export interface Passage {
  readonly method: string;
  readonly path: string;
  readonly isWatch: boolean;
}

export interface FaultyDoor {
  /** What a client takes for the API server. */
  readonly url: string;
  /** Share of all calls that meet each kind of fault: 409 (of writes), 429 with Retry-After, 500, no answer, reset. */
  share: number;
  readonly passages: Passage[];
  /** Faults that were met, by kind. */
  readonly faults: Map<string, number>;
  /** Calls that came again before the time that a Retry-After had named. */
  readonly early: string[];
  /** Breaks one of the watches that are open. */
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
 * A door to a real API server that lets most calls pass and spoils the others.
 * @param upstream where calls that pass go, without TLS or credentials: `kubectl proxy` has them
 * @param draw a number in [0, 1) for each decision
 */
export async function openFaultyDoor(upstream: string, draw: () => number): Promise<FaultyDoor> {
  const watches = new Set<ServerResponse>();
  const notBefore = new Map<string, number>();
  const server = createServer((incoming, response) => {
    const passage = passageOf(incoming, upstream);
    door.passages.push(passage);
    const fault = chooseFault(passage, door.share, draw);
    if (fault !== undefined) door.faults.set(fault, (door.faults.get(fault) ?? 0) + 1);
    judgePace(passage, fault, { notBefore, early: door.early });
    if (fault === 'silence') return;
    if (fault === 'reset') return void response.destroy();
    const refusal = fault === undefined ? undefined : answers[fault];
    if (refusal !== undefined) return refuse(response, refusal);
    if (passage.isWatch) keep(watches, response);
    carry(upstream, incoming, response, fault === 'reset after');
  });
  const door: FaultyDoor = {
    url: await listen(server),
    share: 0,
    passages: [],
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
  return door;
}

function passageOf({ method = 'GET', url = '/' }: IncomingMessage, upstream: string): Passage {
  const { pathname, searchParams } = new URL(url, upstream);
  return { method, path: pathname, isWatch: searchParams.get('watch') === 'true' };
}

function chooseFault({ method }: Passage, share: number, draw: () => number): Fault | undefined {
  const fault = share === 0 ? undefined : faults[Math.floor(draw() / share)];
  if (fault === 'conflict' && method === 'GET') return undefined;
  return fault === 'reset' && draw() < 0.5 ? 'reset after' : fault;
}

interface Pace {
  readonly notBefore: Map<string, number>;
  readonly early: string[];
}

/** Notes a call that comes again too early. Who makes something new asks in the name of a collection: another one need not wait. */
function judgePace(
  { method, path, isWatch }: Passage,
  fault: Fault | undefined,
  { notBefore, early }: Pace,
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

function keep(watches: Set<ServerResponse>, response: ServerResponse): void {
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
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message: 'spoilt', code };
  response.end(JSON.stringify(status));
}

function carry(upstream: string, incoming: IncomingMessage, response: ServerResponse, isLost: boolean): void {
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

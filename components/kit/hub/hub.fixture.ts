import { HttpTransportType, type HubConnection, HubConnectionBuilder, LogLevel } from '@microsoft/signalr';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { authPlugin } from '#kit/auth/auth.ts';
import type { OutboxCursor, OutboxEvent } from '#kit/db/outbox.ts';
import { isBefore, outboxStart } from '#kit/db/outbox.ts';
import { createHttpServer, listenHttp, type TlsSource } from '#kit/http/http.ts';
import { type ManualTiming, settle } from '#kit/testing/manual-timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { Workload } from '#kit/workload/workload.ts';
import { Following } from './following.ts';
import { type HubLimits, hubLimits } from './limits.ts';
import type { LogSource } from './log.ts';
import type { Methods } from './methods.ts';
import { mountHubRoutes } from './routes.ts';
import { HubServer } from './server.ts';
import type { Subscription } from './subscriptions.ts';

export const path = '/hubs/rooms';
const person = { kind: 'user', tier: 'platform', clientId: 'c', roles: ['User'], scopes: [] } as const;
const base = { ...person, issuedAtMs: 0, canSignSystem: false, claims: {} as Caller['claims'] };

/** Callers of these tests; a token is `<name>`, or `<name>-<anything>`, which expires later. `chief` administers. */
export function callerOf(token: string): Caller {
  const [name = ''] = token.split('-');
  if (!/^[a-z]+$/.test(name)) throw new AppError('unauthenticated', 'UNAUTHORIZED', 'unknown token');
  const expiresAtMs = Date.UTC(token === name ? 2100 : 2101, 0);
  const facts = { subject: name, tokenId: token, expiresAtMs };
  if (name === 'robot')
    return { ...base, ...facts, kind: 'service', tier: 'service', platformUserId: undefined };
  if (name === 'nameless') return { ...base, ...facts };
  const roles = token === 'chief' ? (['Administrator'] as const) : base.roles;
  return { ...base, ...facts, roles, platformUserId: name };
}

/** A log in memory: the key of a row is a room, each row is one signal `Said(room, n)`. */
export interface TestLog {
  readonly source: LogSource;
  readonly rows: OutboxEvent[];
  say(room: string, count?: number, options?: { readonly kind?: string; readonly at?: Date }): void;
  notify(): void;
  subscribe(listener: () => void): () => void;
  /** Replaces what rows give. */
  signalsOf: LogSource['signalsOf'];
}

export function testLog(): TestLog {
  const rows: OutboxEvent[] = [];
  const listeners = new Set<() => void>();
  const after = (cursor: OutboxCursor) => rows.filter((row) => isBefore(cursor, row.cursor));
  const log: TestLog = {
    rows,
    source: {
      subject: 'rooms',
      latest: async () => rows.at(-1)?.cursor ?? outboxStart,
      before: async (since) => {
        const first = rows.find(({ createdAt }) => createdAt >= since);
        return (
          rows.findLast((row) => first === undefined || isBefore(row.cursor, first.cursor))?.cursor ??
          outboxStart
        );
      },
      read: async (cursor, limit) => after(cursor).slice(0, limit),
      hasMore: async (cursor) => after(cursor).length > 0,
      readKept: async ({ since, after: cursor, key, limit }) =>
        after(cursor)
          .filter((row) => row.createdAt >= since && row.key === key)
          .slice(0, limit),
      filterOf: (group) => ({ key: group.replace('room:', '') }),
      signalsOf: (events, isHeld) => log.signalsOf(events, isHeld),
    },
    signalsOf: async (events) =>
      events.map(({ kind, key, data }) => ({
        target: kind,
        arguments: [key, Number(data)],
        groups: [`room:${key}`],
      })),
    say: (room, count = 1, { kind = 'Said', at = new Date() } = {}) => {
      for (let n = 0; n < count; n += 1) {
        const sequence = BigInt(rows.length + 1);
        rows.push({
          cursor: { transactionId: 1n, sequence },
          kind,
          key: room,
          data: rows.length,
          createdAt: at,
        });
      }
    },
    notify: () => {
      for (const listener of listeners) listener();
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return log;
}

export interface TestHubOptions {
  readonly log?: TestLog;
  readonly limits?: Partial<HubLimits>;
  /** Time that the test moves; that of the machine when absent. */
  readonly timing?: ManualTiming;
  readonly https?: TlsSource;
  readonly workload?: Workload;
  readonly groupsOf?: (caller: Caller) => readonly string[];
  readonly judge?: Subscription['judge'];
  readonly key?: Buffer;
  /** Methods in place of the rooms. */
  readonly methods?: Methods;
}

export type TestHub = Awaited<ReturnType<typeof startTestHub>>;

/** A hub on its own listener: rooms may be entered by everyone but those whose name begins with `no`. */
export async function startTestHub(options: TestHubOptions = {}) {
  const { log = testLog(), timing, https, limits = {} } = options;
  const runtime = testRuntime('hub', timing === undefined ? {} : { clock: timing });
  const refusedTokens = new Map<string, string>();
  const judged = { count: 0 };
  const room: Subscription = {
    subscribe: 'Enter',
    unsubscribe: 'Leave',
    groupOf: (name) => (/^[a-z0-9]{1,40}$/.test(name) ? `room:${name}` : undefined),
    authorityOf: (caller) => caller.subject,
    judge: async (caller, name) => {
      judged.count += 1;
      await options.judge?.(caller, name);
      if (name.startsWith('no')) throw new AppError('forbidden', 'FORBIDDEN', 'The room is closed.');
    },
  };
  const allLimits = { ...hubLimits, ...(timing !== undefined && { pollSpacingMs: 0 }), ...limits };
  const behaviour =
    options.methods ??
    new Following({
      subscriptions: [room],
      groupsOf: options.groupsOf,
      source: log.source,
      bus: { subscribe: (_subject, listener) => log.subscribe(listener) },
      log: runtime.log,
      timers: timing,
      limits: allLimits,
      nowMs: () => runtime.clock.nowMs(),
    });
  const server = new HubServer({
    path,
    behaviour,
    key: options.key ?? Buffer.alloc(32, 7),
    runtime,
    authenticator: {
      assertCurrent: ({ tokenId }) => {
        const reason = refusedTokens.get(tokenId);
        if (reason !== undefined) throw new AppError('unauthenticated', 'UNAUTHORIZED', reason);
      },
    },
    workload: options.workload,
    timers: timing,
    limits: allLimits,
  });
  const app = createHttpServer({ runtime, title: 'hub', ...(https !== undefined && { https }) });
  authPlugin(app, { authenticate: async (token) => callerOf(token) });
  const polls = { count: 0 };
  app.addHook('preHandler', async ({ method }) => {
    if (method === 'GET') polls.count += 1;
  });
  mountHubRoutes(app, { path, messageBytes: allLimits.messageBytes }, () => server);
  const port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
  await server.start();
  // The feed has read its log once: rows of a test are read at a wake signal or at the poll interval.
  await new Promise((resolve) => setImmediate(resolve));
  const stop = async () => {
    await server.stop();
    await app.close();
  };
  onTestFinished(stop);
  const scheme = https === undefined ? 'http' : 'https';
  const url = `${scheme}://127.0.0.1:${port}${path}`;
  return { log, runtime, server, port, url, refusedTokens, judged, polls, stop };
}

export const transports = [
  ['WebSockets', HttpTransportType.WebSockets],
  ['server-sent events', HttpTransportType.ServerSentEvents],
  ['long polling', HttpTransportType.LongPolling],
] as const;

/** A client of Microsoft's library, with what it received. */
export interface TestClient {
  readonly connection: HubConnection;
  readonly said: [string, number][];
  readonly closed: { count: number; error: Error | undefined };
}

export async function connectClient(
  url: string,
  options: { token?: string; transport?: HttpTransportType; skipNegotiation?: boolean; start?: false } = {},
): Promise<TestClient> {
  const { token = 'ada', transport = HttpTransportType.WebSockets, skipNegotiation = false } = options;
  const connection = new HubConnectionBuilder()
    .withUrl(url, { transport, skipNegotiation, accessTokenFactory: () => token })
    .configureLogging(LogLevel.None)
    .build();
  const said: [string, number][] = [];
  const closed: TestClient['closed'] = { count: 0, error: undefined };
  connection.on('Said', (room: string, n: number) => said.push([room, n]));
  connection.onclose((error) => {
    closed.count += 1;
    closed.error = error;
  });
  onTestFinished(() => connection.stop());
  if (options.start !== false) await connection.start();
  return { connection, said, closed };
}

/** A WebSocket whose records a test writes and reads. */
export async function openSocket(hub: TestHub, { token = 'ada', query = '' } = {}) {
  const socket = new WebSocket(`${hub.url.replace('http', 'ws')}?access_token=${token}${query}`);
  const received: Buffer[] = [];
  const state = { closedWith: 0 };
  socket.on('message', (data: Buffer) => received.push(data));
  socket.on('close', (code) => {
    state.closedWith = code;
  });
  socket.on('error', () => undefined);
  onTestFinished(() => socket.terminate());
  await waitFor(() => socket.readyState !== WebSocket.CONNECTING);
  const text = () => Buffer.concat(received).toString('utf8');
  return {
    socket,
    state,
    text,
    records: () =>
      text()
        .split('\u001e')
        .filter((record) => record !== '')
        .map((record): ReturnType<typeof JSON.parse> => JSON.parse(record)),
    send: (...messages: object[]) =>
      socket.send(messages.map((one) => `${JSON.stringify(one)}\u001e`).join('')),
    isClosed: () => socket.readyState === WebSocket.CLOSED,
  };
}

export const handshake = { protocol: 'json', version: 1 } as const;

/** An HTTP request to a hub. */
export async function ask(
  hub: TestHub,
  method: string,
  query: string,
  given: { token?: string; body?: string } = {},
) {
  const response = await fetch(`${hub.url}${query}`, {
    method,
    headers: { authorization: `Bearer ${given.token ?? 'ada'}` },
    ...(given.body !== undefined && { body: given.body }),
  });
  return { status: response.status, text: await response.text() };
}

/** The text of a connection token. */
export async function negotiate(hub: TestHub, token = 'ada'): Promise<string> {
  const { status, text } = await ask(hub, 'POST', '/negotiate?negotiateVersion=1', { token });
  if (status !== 200) throw new Error(text);
  const { connectionToken }: { connectionToken: string } = JSON.parse(text);
  return connectionToken;
}

/** Moves time in the steps of the hub, with turns for sockets in between. */
export async function pass(timing: ManualTiming, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    await timing.advance(Math.min(500, ms - passed));
    await settle();
  }
}

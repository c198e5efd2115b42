import { fork } from 'node:child_process';
import { z } from 'zod';
import type { Unit } from './frames.ts';

/** One client: what it requests, what it sends once connected, and how many records the server answers. */
export interface ClientPlan {
  readonly path: string;
  readonly greetings: readonly string[];
  readonly replies: number;
}

export type ToClients =
  | {
      readonly act: 'open';
      readonly port: number;
      readonly plans: readonly ClientPlan[];
      readonly dialect: Dialect;
    }
  | { readonly act: 'count'; readonly records: number };

/** What is counted of a server's messages, and what keeps a connection open; SignalR's where it is not named. */
export interface Dialect {
  readonly unit: Unit;
  /** A message of the client. */
  readonly ping: string | undefined;
}

const signalR: Dialect = { unit: 'records', ping: '{"type":6}\u001e' };

const said = z.discriminatedUnion('is', [
  z.object({ is: z.enum(['open', 'ready', 'reached']) }),
  z.object({ is: z.enum(['message', 'failed']), text: z.string() }),
]);

/** Connected clients in a process of their own. */
export interface Crowd {
  readonly size: number;
  /** From now on, counts the records of all clients; resolves with a promise of the instant at which there are so many. */
  expect(records: number): Promise<{ readonly reached: Promise<void> }>;
  /** Called with the text of each message that the first client gets. */
  onMessage(listener: (text: string) => void): void;
  stop(): Promise<void>;
}

/** Plans of clients of a bare server, which answers nothing. */
export function barePlans(count: number): readonly ClientPlan[] {
  return Array.from({ length: count }, (_, n) => ({ path: `/${n}`, greetings: [], replies: 0 }));
}

/** Clients of `raw/socket-io.ts`: Engine.IO 4 says that the transport is open, and answers the client's CONNECT packet. */
export function connectSocketIo(port: number, count: number): Promise<Crowd> {
  const plans = Array.from({ length: count }, (_, n) => ({
    path: `/socket.io/?EIO=4&transport=websocket&name=/${n}`,
    greetings: ['40'],
    replies: 2,
  }));
  return connectCrowd(port, plans, { unit: 'messages', ping: undefined });
}

/** The greetings of a client of a hub: the handshake and its subscriptions. Each of them has one answer. */
export function hubGreetings(
  method: string,
  groups: readonly string[],
): Pick<ClientPlan, 'greetings' | 'replies'> {
  const records = [
    { protocol: 'json', version: 1 },
    ...groups.map((group, n) => ({
      type: 1,
      invocationId: String(n),
      target: method,
      arguments: [group],
    })),
  ];
  return {
    greetings: records.map((record) => `${JSON.stringify(record)}\u001e`),
    replies: records.length,
  };
}

/** Connects clients to a server on this machine; resolves when all of them are subscribed. */
export async function connectCrowd(
  port: number,
  plans: readonly ClientPlan[],
  dialect: Dialect = signalR,
): Promise<Crowd> {
  const child = fork(new URL('./clients.ts', import.meta.url));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  let hear: (text: string) => void = () => undefined;
  const next = (is: string): Promise<void> => {
    const one = Promise.withResolvers<void>();
    waiting.set(is, one);
    return one.promise;
  };
  const tell = (message: ToClients) => void child.send(JSON.stringify(message));
  await new Promise((resolve) => child.once('message', resolve));
  child.on('message', (text) => {
    const message = said.parse(JSON.parse(String(text)));
    if (message.is === 'message') hear(message.text);
    else if (message.is === 'failed') for (const one of waiting.values()) one.reject(new Error(message.text));
    else waiting.get(message.is)?.resolve();
  });
  const opened = next('open');
  tell({ act: 'open', port, plans, dialect });
  await opened;
  return {
    size: plans.length,
    expect: async (records) => {
      const ready = next('ready');
      const reached = next('reached');
      tell({ act: 'count', records });
      await ready;
      return { reached };
    },
    onMessage: (listener) => {
      hear = listener;
    },
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

import { once } from 'node:events';
import { Agent } from 'node:https';
import { WebSocket } from 'ws';
import { until } from '../../harness/wait.ts';
import type { Identity } from '../raw/wire.ts';

const deadlineMs = 60_000;
/** A hub closes connections that are silent for 30 s. */
const pingMs = 10_000;
const ping = '{"type":6}\u001e';

/** A client that notes which signals it gets. */
export interface Follower {
  /** Resolves when a signal with this text has come, now or earlier; each signal serves one call. */
  heard(text: string): Promise<void>;
  close(): void;
}

/** Signals by their text: those that came before they were waited for, and those that are waited for. */
export class Inbox {
  readonly #early = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();

  add(text: string): void {
    const wake = this.#waiting.get(text)?.shift();
    if (wake === undefined) this.#early.set(text, (this.#early.get(text) ?? 0) + 1);
    else wake();
  }

  /** @throws Error when none comes within the time */
  async take(text: string, withinMs: number): Promise<void> {
    const early = this.#early.get(text) ?? 0;
    if (early > 0) {
      this.#early.set(text, early - 1);
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(text) ?? [];
    this.#waiting.set(text, [...waiting, resolve]);
    const late = () => {
      const others = (this.#waiting.get(text) ?? []).filter((each) => each !== resolve);
      this.#waiting.set(text, others);
      reject(new Error(`no signal "${text}" within ${withinMs / 1000} s`));
    };
    const timer = setTimeout(late, withinMs);
    await promise.finally(() => clearTimeout(timer));
  }
}

async function connect(url: string, identity: Identity): Promise<WebSocket> {
  const { key, cert, ca } = identity;
  const agent = new Agent({ key, cert, ca, checkServerIdentity: () => undefined });
  const socket = new WebSocket(url, { agent });
  await once(socket, 'open');
  return socket;
}

/** Follows a raw program, whose messages are the texts of signals. */
export async function followRaw(url: string, identity: Identity): Promise<Follower> {
  const inbox = new Inbox();
  const socket = await connect(url.replace('https', 'wss'), identity);
  socket.on('message', (data: Buffer) => inbox.add(data.toString()));
  return { heard: (text) => inbox.take(text, deadlineMs), close: () => socket.terminate() };
}

interface HubMessage {
  readonly type?: number;
  readonly target?: string;
  readonly arguments?: readonly unknown[];
  readonly error?: string;
}

/** Follows a wallet at a hub of workflows; the text of a signal is its name, the instance and the action. */
export async function followWallet(
  origin: string,
  identity: Identity,
  { token, wallet }: { readonly token: string; readonly wallet: string },
): Promise<Follower> {
  const inbox = new Inbox();
  const url = `${origin.replace('https', 'wss')}/hubs/blueprint?access_token=${token}`;
  const socket = await connect(url, identity);
  let subscribed: HubMessage | undefined;
  socket.on('message', (data: Buffer) => {
    for (const text of data.toString().split('\u001e').filter(Boolean)) {
      const message: HubMessage = JSON.parse(text);
      const [instanceId, actionId] = message.arguments ?? [];
      if (message.type === 1) inbox.add(`${message.target} ${instanceId} ${actionId}`);
      else if (message.type === 3) subscribed = message;
    }
  });
  const invocation = { type: 1, invocationId: '0', target: 'SubscribeToWallet', arguments: [wallet] };
  for (const record of [{ protocol: 'json', version: 1 }, invocation])
    socket.send(`${JSON.stringify(record)}\u001e`);
  const { error } = await until('the subscription', 10_000, async () => subscribed);
  if (error !== undefined) throw new Error(error);
  const pings = setInterval(() => socket.send(ping), pingMs);
  return {
    heard: (text) => inbox.take(text, deadlineMs),
    close: () => {
      clearInterval(pings);
      socket.terminate();
    },
  };
}

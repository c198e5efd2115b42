import {
  connect,
  headers,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type NodeConnectionOptions,
} from '@nats-io/transport-node';
import { context } from '@opentelemetry/api';
import type { Logger } from '#kit/log/log.ts';
import { contextFrom, currentTraceparent } from '#kit/telemetry/telemetry.ts';

const firstConnectionTimeoutMs = 2_000;
const connectTimeoutMs = 5_000;
const backoffFirstMs = 50;
const backoffLastMs = 2_000;
const pingIntervalMs = 15_000;
const keptRingsLimit = 1_024;
const closeTimeoutMs = 1_000;

interface NatsBusOptions {
  readonly url: string;
  readonly name: string;
  readonly log: Logger;
  readonly tls?: { readonly ca: string; readonly cert?: string; readonly key?: string } | undefined;
  readonly firstConnectionMs?: number;
}

interface Listening {
  readonly subject: string;
  readonly listener: () => void;
  /** Ends the subscription of the current connection. */
  end: () => void;
}

/**
 * Implements Bus of bus.ts over the official client. The client's own reconnection is off; one loop here reconnects.
 */
export class NatsBus {
  readonly #options: NatsBusOptions;
  readonly #listening = new Set<Listening>();
  readonly #kept = new Set<string>();
  readonly #closing = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  readonly #loop: Promise<void>;
  #connection: NatsConnection | undefined;

  constructor(options: NatsBusOptions) {
    this.#options = options;
    this.#loop = this.#stayConnected();
  }

  get connected(): boolean {
    return this.#connection !== undefined && !this.#connection.isClosed();
  }

  async firstConnection(): Promise<void> {
    const timer = setTimeout(
      () => this.#first.resolve(),
      this.#options.firstConnectionMs ?? firstConnectionTimeoutMs,
    );
    await this.#first.promise;
    clearTimeout(timer);
  }

  publish(subject: string): void {
    if (this.#closing.signal.aborted) return;
    if (!this.#send(subject) && this.#kept.size < keptRingsLimit) this.#kept.add(subject);
  }

  subscribe(subject: string, listener: () => void): () => void {
    const listening: Listening = { subject, listener, end: () => {} };
    this.#listening.add(listening);
    this.#attach(listening);
    return () => {
      this.#listening.delete(listening);
      listening.end();
      listening.end = () => {};
    };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#listening.clear();
    this.#kept.clear();
    const connection = this.#connection;
    if (connection !== undefined) await drained(connection);
    await this.#loop;
  }

  #send(subject: string): boolean {
    const connection = this.#connection;
    if (connection === undefined || connection.isClosed()) return false;
    try {
      const traceparent = currentTraceparent();
      if (traceparent === undefined) connection.publish(subject);
      else connection.publish(subject, undefined, { headers: traceHeaders(traceparent) });
      return true;
    } catch (error) {
      this.#options.log.debug({ err: error, subject }, 'wake signal kept for the next connection');
      return false;
    }
  }

  #attach(listening: Listening): void {
    const connection = this.#connection;
    if (connection === undefined || connection.isClosed()) return;
    try {
      const subscription = connection.subscribe(listening.subject, {
        callback: (error, message) => {
          if (error === null) this.#notify(listening, message);
          else this.#options.log.warn({ err: error, subject: listening.subject }, 'bus subscription failed');
        },
      });
      listening.end = () => subscription.unsubscribe();
    } catch (error) {
      this.#options.log.warn({ err: error, subject: listening.subject }, 'bus subscription failed');
    }
  }

  #notify(listening: Listening, message?: Msg): void {
    if (!this.#listening.has(listening)) return;
    try {
      const traceparent = message?.headers?.get('traceparent');
      if (traceparent === undefined || traceparent === '') listening.listener();
      else context.with(contextFrom(traceparent), listening.listener);
    } catch (error) {
      this.#options.log.error({ err: error, subject: listening.subject }, 'bus listener failed');
    }
  }

  async #stayConnected(): Promise<void> {
    let pauseMs = backoffFirstMs;
    let connectedBefore = false;
    while (!this.#closing.signal.aborted) {
      const connection = await this.#connect();
      if (connection === undefined) {
        await pause(pauseMs * (0.5 + Math.random() / 2), this.#closing.signal);
        pauseMs = Math.min(pauseMs * 2, backoffLastMs);
        continue;
      }
      pauseMs = backoffFirstMs;
      this.#enter(connection, connectedBefore);
      connectedBefore = true;
      await connection.closed();
      this.#connection = undefined;
      if (!this.#closing.signal.aborted) this.#options.log.warn('bus connection lost');
    }
  }

  async #connect(): Promise<NatsConnection | undefined> {
    try {
      const connection = await connect(clientOptions(this.#options));
      if (!this.#closing.signal.aborted) return connection;
      await connection.close();
    } catch (error) {
      this.#options.log.debug({ err: error }, 'bus not reachable');
    }
    return undefined;
  }

  #enter(connection: NatsConnection, again: boolean): void {
    this.#connection = connection;
    this.#options.log.info({ server: connection.getServer() }, 'bus connected');
    for (const listening of this.#listening) this.#attach(listening);
    const kept = [...this.#kept];
    this.#kept.clear();
    for (const subject of kept) this.publish(subject);
    if (again) {
      for (const listening of this.#listening) this.#notify(listening);
    }
    this.#first.resolve();
  }
}

function clientOptions(options: NatsBusOptions): NodeConnectionOptions {
  const addresses = options.url
    .split(',')
    .map((text) => new URL(text.includes('://') ? text : `nats://${text}`));
  const [first] = addresses;
  const user = decodeURIComponent(first?.username ?? '');
  return {
    servers: addresses.map((address) => address.host),
    name: options.name,
    reconnect: false,
    timeout: connectTimeoutMs,
    pingInterval: pingIntervalMs,
    maxPingOut: 2,
    ignoreClusterUpdates: true,
    ...(user !== '' && { user, pass: decodeURIComponent(first?.password ?? '') }),
    ...(options.tls !== undefined && { tls: { ...options.tls } }),
  };
}

function traceHeaders(traceparent: string): MsgHdrs {
  const made = headers();
  made.set('traceparent', traceparent);
  return made;
}

async function drained(connection: NatsConnection): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, closeTimeoutMs);
  await Promise.race([connection.drain().catch(() => undefined), promise]);
  clearTimeout(timer);
  await connection.close();
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => resolve();
  const timer = setTimeout(done, ms);
  signal.addEventListener('abort', done, { once: true });
  await promise;
  clearTimeout(timer);
  signal.removeEventListener('abort', done);
}

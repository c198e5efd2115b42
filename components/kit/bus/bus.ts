import type { Secret } from '#kit/config/config.ts';
import type { Logger } from '#kit/log/log.ts';
import { NatsBus } from './nats.ts';

/**
 * Doorbells without content. A ring says "look again"; it may be lost, doubled or late, so a listener
 * also polls. After every reconnection each listener is rung once, for what it may have missed.
 */
export interface Bus {
  readonly connected: boolean;
  /** Rings a subject. Never throws; while disconnected the ring is kept, once per subject, for the next connection. */
  publish(subject: string): void;
  /** Calls back at each ring; returns the function that ends it. `*` and `>` match as in NATS. */
  subscribe(subject: string, listener: () => void): () => void;
  /** Sends what is on its way and disconnects. */
  close(): Promise<void>;
}

export interface BusTls {
  /** PEM. */
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface BusOptions {
  /** `nats://[user:password@]host:port`, several with commas. */
  readonly url: string;
  /** Client name shown by the server. */
  readonly name: string;
  readonly log: Logger;
  readonly tls?: BusTls | undefined;
  /** How long to wait for the first connection before going on without it, milliseconds. Default 2000. */
  readonly firstConnectionMs?: number;
}

/**
 * Connects to core NATS and keeps reconnecting for ever. Resolves also when no server answers, with
 * `connected: false`: a missing bus costs latency, never a start.
 */
export async function connectBus(options: BusOptions): Promise<Bus> {
  const bus = new NatsBus(options);
  await bus.firstConnection();
  return bus;
}

/** Where the bus is and how it is judged, from the settings of a process. */
export function busOf(config: {
  readonly NATS_URL: string;
  readonly CHANCERY_NATS_CA_FILE?: Secret | undefined;
}): Pick<BusOptions, 'url' | 'tls'> {
  const ca = config.CHANCERY_NATS_CA_FILE?.text();
  return { url: config.NATS_URL, tls: ca === undefined ? undefined : { ca } };
}

import type { Secret } from '#kit/config/config.ts';
import type { Logger } from '#kit/log/log.ts';
import { NatsBus } from './nats.ts';

/**
 * Wake signals over core NATS, without content. A signal means that there is something new to read. It may be lost,
 * repeated or late, so a listener also polls. After every reconnection each listener is notified once, for signals it
 * may have missed.
 */
export interface Bus {
  readonly connected: boolean;
  /**
   * Sends a wake signal on a subject. Never throws. While disconnected, one signal a subject is kept for the next
   * connection.
   */
  publish(subject: string): void;
  /** Calls back at each signal; returns the function that unsubscribes. `*` and `>` match as in NATS. */
  subscribe(subject: string, listener: () => void): () => void;
  /** Sends what is pending and disconnects. */
  close(): Promise<void>;
}

interface BusTls {
  /** PEM. */
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

interface BusOptions {
  /** `nats://[user:password@]host:port`, several with commas. */
  readonly url: string;
  /** Client name shown by the server. */
  readonly name: string;
  readonly log: Logger;
  readonly tls?: BusTls | undefined;
  /** How long to wait for the first connection before starting without it, milliseconds. Default 2000. */
  readonly firstConnectionMs?: number;
}

/**
 * Connects to core NATS and keeps reconnecting without limit. Resolves also when no server answers, with `connected:
 * false`: without the bus only latency grows, and services start all the same.
 */
export async function connectBus(options: BusOptions): Promise<Bus> {
  const bus = new NatsBus(options);
  await bus.firstConnection();
  return bus;
}

/** Address and TLS settings of the bus, from the settings of a process. */
export function busOf(config: {
  readonly NATS_URL: string;
  readonly CHANCERY_NATS_CA_FILE?: Secret | undefined;
}): Pick<BusOptions, 'url' | 'tls'> {
  const ca = config.CHANCERY_NATS_CA_FILE?.text();
  return { url: config.NATS_URL, tls: ca === undefined ? undefined : { ca } };
}

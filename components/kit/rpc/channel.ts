import { Client, connectivityState } from '@grpc/grpc-js';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Workload } from '#kit/workload/workload.ts';
import { channelCredentials } from './credentials.ts';
import { CLIENT_OPTIONS } from './wire.ts';

/** The use of a connection by one call. */
export interface ChannelHold {
  readonly client: Client;
  /** Call it once, when the call has ended. */
  release(): void;
  /** Calls back when the connection has been replaced and its last call has ended. */
  onClosed(listener: () => void): void;
}

/** Limits of the wait for a connection. */
export interface WaitLimits {
  /** Milliseconds since the epoch. */
  readonly deadline?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface Channel {
  readonly client: Client;
  active: number;
  retired: boolean;
  closed: boolean;
  readonly closeListeners: (() => void)[];
  /** The current attempt to connect; resolves when it succeeded, failed or was abandoned. */
  attempt: Promise<void> | undefined;
  /**
   * Time of the monotonic clock at which it was first seen to have failed; undefined unless the last check found it so.
   */
  failedAtMs: number | undefined;
}

/** An attempt to connect is abandoned after `first`; each next attempt has twice the time, up to `last`. */
const connectMs = { first: 3_000, last: 10_000 } as const;

/**
 * The connection of an RPC client, replaced as a whole at each rotation of the SVID. grpc-js's certificate-provider
 * credentials affect new handshakes only: an established HTTP/2 connection would keep the old certificate past its end.
 * Here new calls open a connection with the new SVID at once. The old connection closes when its last call has ended,
 * at the latest when the server ends the streams of the expired certificate.
 *
 * It is also replaced when an attempt to connect takes too long. grpc-js has no limit for an attempt: at an address
 * that does not answer it hangs until the kernel gives up, two minutes later, and in the meantime the name is not
 * resolved again. A call gets only a channel that is connected or whose attempt has failed, so that no call is in a
 * channel that is abandoned. A channel that has failed stays in that state until it is connected, also while another
 * attempt hangs, so it is replaced after the same time.
 */
export class RotatingChannel {
  readonly #address: string;
  readonly #workload: Workload;
  readonly #accepts: (spiffeId: string) => boolean;
  readonly #forget: () => void;
  #channel: Channel | undefined;
  #connectMs: number = connectMs.first;
  #closed = false;

  constructor(address: string, workload: Workload, accepts: (spiffeId: string) => boolean) {
    this.#address = address;
    this.#workload = workload;
    this.#accepts = accepts;
    this.#forget = workload.onRotate(() => this.#retire());
  }

  /**
   * A connection for one call. While one is opened the call waits here, also across attempts.
   *
   * @throws AppError timeout at the deadline, unavailable when the signal is aborted or this channel is closed
   * meanwhile.
   */
  async acquire(limits: WaitLimits = {}): Promise<ChannelHold> {
    for (;;) {
      const channel = this.#channel ?? this.#open();
      this.#channel = channel;
      const attempt = this.#attempt(channel);
      if (attempt !== undefined) await waitWithin(attempt, limits);
      else if (hasFailedFor(channel, this.#connectMs)) this.#retire();
      else return hold(channel);
    }
  }

  close(): void {
    this.#closed = true;
    this.#forget();
    this.#retire();
  }

  #open(): Channel {
    if (this.#closed) throw new AppError('unavailable', 'RPC_CLIENT_CLOSED', 'the client has been closed');
    const credentials = channelCredentials(this.#workload, this.#accepts);
    const client = new Client(this.#address, credentials, CLIENT_OPTIONS);
    return {
      client,
      active: 0,
      retired: false,
      closed: false,
      closeListeners: [],
      attempt: undefined,
      failedAtMs: undefined,
    };
  }

  /** Undefined when there is nothing to wait for. */
  #attempt(channel: Channel): Promise<void> | undefined {
    if (isDecided(channel.client.getChannel().getConnectivityState(true))) return undefined;
    channel.attempt ??= this.#connect(channel).finally(() => {
      channel.attempt = undefined;
    });
    return channel.attempt;
  }

  async #connect(channel: Channel): Promise<void> {
    if (await hasDecided(channel.client, Date.now() + this.#connectMs)) {
      this.#connectMs = connectMs.first;
      return;
    }
    this.#connectMs = Math.min(this.#connectMs * 2, connectMs.last);
    if (this.#channel === channel) this.#channel = undefined;
    channel.retired = true;
    close(channel);
  }

  #retire(): void {
    const channel = this.#channel;
    this.#channel = undefined;
    if (channel === undefined) return;
    channel.retired = true;
    closeWhenIdle(channel);
  }
}

function hold(channel: Channel): ChannelHold {
  channel.active += 1;
  let released = false;
  return {
    client: channel.client,
    release: () => {
      if (released) return;
      released = true;
      channel.active -= 1;
      closeWhenIdle(channel);
    },
    onClosed: (listener) => void channel.closeListeners.push(listener),
  };
}

function closeWhenIdle(channel: Channel): void {
  if (channel.retired && channel.active === 0) close(channel);
}

function close(channel: Channel): void {
  if (channel.closed) return;
  channel.closed = true;
  for (const listener of channel.closeListeners) listener();
  channel.client.close();
}

/** Whether an attempt to connect has succeeded or failed; grpc-js resolves the name again after a failure. */
function isDecided(state: connectivityState): boolean {
  return state !== connectivityState.IDLE && state !== connectivityState.CONNECTING;
}

/** Whether every check for this time found it failed. */
function hasFailedFor(channel: Channel, ms: number): boolean {
  const state = channel.client.getChannel().getConnectivityState(false);
  if (state !== connectivityState.TRANSIENT_FAILURE) channel.failedAtMs = undefined;
  else channel.failedAtMs ??= performance.now();
  return channel.failedAtMs !== undefined && performance.now() - channel.failedAtMs > ms;
}

/** Waits until the attempt to connect has succeeded or failed; false when neither happened at the deadline. */
function hasDecided(client: Client, deadline: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const channel = client.getChannel();
  const check = () => {
    const state = channel.getConnectivityState(false);
    if (isDecided(state)) return resolve(true);
    return channel.watchConnectivityState(state, deadline, (late) => (late ? resolve(false) : check()));
  };
  check();
  return promise;
}

async function waitWithin(attempt: Promise<void>, { deadline, signal }: WaitLimits): Promise<void> {
  const { promise: given, reject } = Promise.withResolvers<never>();
  const late = () =>
    reject(new AppError('timeout', genericCode('timeout'), 'no connection came about in time'));
  const cancelled = () =>
    reject(new AppError('unavailable', genericCode('unavailable'), 'the call was cancelled'));
  const timer = deadline === undefined ? undefined : setTimeout(late, Math.max(0, deadline - Date.now()));
  signal?.addEventListener('abort', cancelled, { once: true });
  if (signal?.aborted === true) cancelled();
  try {
    await Promise.race([attempt, given]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancelled);
  }
}

import { AppError, genericCode } from '#core/errors/errors.ts';
import type { HubConnection } from './connection.ts';
import type { HubLimits } from './limits.ts';
import { LongPolling } from './long-polling.ts';

interface Draining {
  readonly transport: LongPolling;
  readonly untilMs: number;
}

/** The connections of a replica, within their bounds. */
export class Sessions {
  readonly #limits: HubLimits;
  readonly #connections = new Map<string, HubConnection>();
  readonly #perUser = new Map<string, number>();
  /** Ids of tokens that were used, until the tokens are too old to open a connection. */
  readonly #used = new Map<string, number>();
  /** Ended connections whose last records wait for a poll. */
  readonly #draining = new Map<string, Draining>();

  constructor(limits: HubLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#connections.size;
  }

  all(): readonly HubConnection[] {
    return [...this.#connections.values()];
  }

  find(id: string): HubConnection | undefined {
    return this.#connections.get(id);
  }

  /** The polls of a connection that has ended. */
  findDraining(id: string): LongPolling | undefined {
    return this.#draining.get(id)?.transport;
  }

  wasUsed(id: string): boolean {
    return this.#used.has(id);
  }

  /**
   * Errors: rate_limited/TOO_MANY_CONNECTIONS for the user's 21st connection, unavailable/SERVICE_UNAVAILABLE when the
   * replica is full.
   */
  assertRoom(userId: string): void {
    if ((this.#perUser.get(userId) ?? 0) >= this.#limits.connectionsPerUser) {
      throw new AppError('rate_limited', 'TOO_MANY_CONNECTIONS', 'You have too many connections.', {
        retryAfterSeconds: 5,
      });
    }
    if (this.size >= this.#limits.connectionsPerReplica) {
      throw new AppError('unavailable', genericCode('unavailable'), 'The replica has too many connections.', {
        retryAfterSeconds: 1,
        elsewhere: true,
      });
    }
  }

  add(connection: HubConnection, nowMs: number): void {
    this.#connections.set(connection.id, connection);
    this.#perUser.set(connection.userId, (this.#perUser.get(connection.userId) ?? 0) + 1);
    // The clocks of replicas may differ by as much as a token may be old.
    this.#used.set(connection.id, nowMs + 2 * this.#limits.openMs);
  }

  remove(connection: HubConnection, nowMs: number): void {
    const { id, userId, transport } = connection;
    if (!this.#connections.delete(id)) return;
    const others = (this.#perUser.get(userId) ?? 1) - 1;
    if (others === 0) this.#perUser.delete(userId);
    else this.#perUser.set(userId, others);
    if (transport instanceof LongPolling) {
      this.#draining.set(id, { transport, untilMs: nowMs + this.#limits.pollGapMs });
    }
  }

  /** Forgets what nothing can refer to any more. */
  prune(nowMs: number): void {
    for (const [id, untilMs] of this.#used) if (nowMs >= untilMs) this.#used.delete(id);
    for (const [id, { untilMs }] of this.#draining) if (nowMs >= untilMs) this.#draining.delete(id);
  }
}

import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Invocation } from './calls.ts';
import type { HubConnection, Judgement } from './connection.ts';
import { batchesOf, createEncoder } from './frames.ts';
import type { Groups } from './groups.ts';
import type { HubLimits } from './limits.ts';
import type { Feed, Replay } from './log.ts';
import { notStreamed, unknownMethod, wrongArguments } from './method-errors.ts';
import { invocationOf } from './protocol.ts';
import type { Signal } from './signal.ts';

/** A pair of methods by which clients join and leave a kind of group. */
export interface Subscription {
  /** Method `(name, since?)`; its result is `{replayed, complete}`. */
  readonly subscribe: string;
  /** Method `(name)`. */
  readonly unsubscribe: string;
  /** The group of a name; undefined for a malformed one. */
  groupOf(name: string): string | undefined;
  /** Callers with equal texts are judged alike; within one round one of them is judged for all. */
  authorityOf(caller: Caller): string;
  /**
   * Runs when a subscription is made, and every 60 s.
   * @throws AppError when the caller may not have it; its message is shown
   */
  judge(caller: Caller, name: string): Promise<void>;
}

/** An instant, ISO 8601 with `Z` or an offset, as milliseconds since the epoch. */
export const instantSchema = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

const subscribeArguments = z.union([
  z.tuple([z.string().min(1).max(256)]),
  z.tuple([z.string().min(1).max(256), z.union([instantSchema, z.null()])]),
]);
const unsubscribeArguments = z.tuple([z.string().min(1).max(256)]);

/** A group that follows from the caller's own id. */
const alwaysAllowed: Judgement = { authorityOf: () => '', judge: () => Promise.resolve() };

const nothingMissed: Replay = { replayed: 0, complete: true };

interface SubscriptionsOptions {
  readonly declared: readonly Subscription[];
  readonly groups: Groups;
  readonly feed: Feed;
  readonly limits: HubLimits;
  /** Groups that are being joined, which the log must include from then on. */
  readonly joining: Map<string, number>;
}

/** The methods of a hub, and the groups of its connections. */
export class Subscriptions {
  readonly #options: SubscriptionsOptions;

  constructor(options: SubscriptionsOptions) {
    this.#options = options;
  }

  /**
   * Errors: invalid/HUB_METHOD_UNKNOWN, invalid/HUB_METHOD_NOT_STREAMED, invalid/INVALID_ARGUMENTS,
   * rate_limited/TOO_MANY_SUBSCRIPTIONS.
   */
  async invoke(connection: HubConnection, { target, args, stream }: Invocation): Promise<Replay | null> {
    const subscription = this.#options.declared.find(
      ({ subscribe, unsubscribe }) => target === subscribe || target === unsubscribe,
    );
    if (subscription === undefined) throw unknownMethod();
    if (stream !== undefined) throw notStreamed(target);
    if (target === subscription.unsubscribe) return this.#unsubscribe(connection, subscription, args);
    return await this.#subscribe(connection, subscription, args);
  }

  /** Joins the groups that the connection has from its start, with what it missed since the instant of its query. */
  async joinFirst(connection: HubConnection, groups: readonly string[]): Promise<void> {
    const { sinceMs } = connection;
    const replays = [];
    for (const group of groups) {
      replays.push(await this.#join(connection, { group, judgement: alwaysAllowed, sinceMs }));
    }
    if (sinceMs === undefined) return;
    const replayed = replays.reduce((sum, replay) => sum + replay.replayed, 0);
    connection.send(invocationOf('Replayed', [replayed, replays.every(({ complete }) => complete)]));
  }

  /** Leaves every group. */
  leaveAll(connection: HubConnection): void {
    for (const group of connection.groups.keys()) this.#options.groups.leave(group, connection);
    connection.groups.clear();
  }

  async #subscribe(
    connection: HubConnection,
    subscription: Subscription,
    args: readonly unknown[],
  ): Promise<Replay> {
    const parsed = subscribeArguments.safeParse(args);
    const [name = '', sinceMs] = parsed.data ?? [];
    const group = parsed.success ? subscription.groupOf(name) : undefined;
    if (group === undefined) throw wrongArguments(`${subscription.subscribe}(name, since?)`);
    const isFull = connection.groups.size >= this.#options.limits.groupsPerConnection;
    if (isFull && !connection.groups.has(group)) {
      throw new AppError(
        'rate_limited',
        'TOO_MANY_SUBSCRIPTIONS',
        'The connection has too many subscriptions.',
      );
    }
    const judgement: Judgement = {
      authorityOf: (caller) => subscription.authorityOf(caller),
      judge: (caller) => subscription.judge(caller, name),
    };
    await judgement.judge(connection.caller);
    return await this.#join(connection, { group, judgement, sinceMs: sinceMs ?? undefined });
  }

  #unsubscribe(
    connection: HubConnection,
    { unsubscribe, groupOf }: Subscription,
    args: readonly unknown[],
  ): null {
    const parsed = unsubscribeArguments.safeParse(args);
    const group = parsed.success ? groupOf(parsed.data[0]) : undefined;
    if (group === undefined) throw wrongArguments(`${unsubscribe}(name)`);
    this.#options.groups.leave(group, connection);
    connection.groups.delete(group);
    return null;
  }

  async #join(
    connection: HubConnection,
    to: { group: string; judgement: Judgement; sinceMs: number | undefined },
  ): Promise<Replay> {
    const { groups, feed, joining, limits } = this.#options;
    const { group, judgement, sinceMs } = to;
    const join = () => {
      if (connection.hasEnded) return;
      connection.groups.set(group, judgement);
      groups.join(group, connection);
    };
    // A repeated subscription starts anew, so that the order of its signals is the order of the log.
    groups.leave(group, connection);
    joining.set(group, (joining.get(group) ?? 0) + 1);
    try {
      if (sinceMs !== undefined) {
        return await feed.replay(group, sinceMs, {
          userId: connection.userId,
          isWanted: () => !connection.hasEnded,
          send: async (signals) => sendAll(connection, signals, limits.batchBytes),
          join,
        });
      }
      await feed.join(join);
      return nothingMissed;
    } finally {
      const others = (joining.get(group) ?? 1) - 1;
      if (others === 0) joining.delete(group);
      else joining.set(group, others);
    }
  }
}

function sendAll(connection: HubConnection, signals: readonly Signal[], batchBytes: number): void {
  for (const batch of batchesOf(signals.map(createEncoder()), batchBytes)) connection.deliver(batch);
}

import type { Caller } from '#core/identity/claims.ts';
import type { Behaviour } from './behaviour.ts';
import type { Invocation } from './calls.ts';
import type { HubConnection } from './connection.ts';
import { Groups } from './groups.ts';
import type { HubLimits } from './limits.ts';
import { Feed, type FeedOptions } from './log.ts';
import { type Subscription, Subscriptions } from './subscriptions.ts';

interface FollowingOptions extends Omit<FeedOptions, 'isHeld' | 'deliver'> {
  readonly limits: HubLimits;
  readonly subscriptions: readonly Subscription[];
  readonly groupsOf?: ((caller: Caller) => readonly string[]) | undefined;
}

/** Connections that join groups and get the signals of an event log. */
export class Following implements Behaviour {
  readonly #groupsOf: (caller: Caller) => readonly string[];
  readonly #groups: Groups;
  readonly #joining = new Map<string, number>();
  readonly #feed: Feed;
  readonly #subscriptions: Subscriptions;

  constructor({ subscriptions, groupsOf, ...options }: FollowingOptions) {
    const { limits } = options;
    this.#groupsOf = groupsOf ?? (() => []);
    this.#groups = new Groups(limits.batchBytes);
    this.#feed = new Feed({
      ...options,
      isHeld: (group) => this.#groups.has(group) || this.#joining.has(group),
      deliver: (signals) => this.#groups.deliver(signals),
    });
    const [groups, feed, joining] = [this.#groups, this.#feed, this.#joining];
    this.#subscriptions = new Subscriptions({ declared: subscriptions, groups, feed, limits, joining });
  }

  async start(): Promise<void> {
    await this.#feed.start();
  }

  async stop(): Promise<void> {
    await this.#feed.stop();
  }

  /** Every person may connect; subscriptions are judged. */
  assertMayConnect(): void {}

  async opened(connection: HubConnection): Promise<void> {
    await this.#subscriptions.joinFirst(connection, this.#groupsOf(connection.caller));
  }

  async invoke(connection: HubConnection, invocation: Invocation): Promise<unknown> {
    return await this.#subscriptions.invoke(connection, invocation);
  }

  ended(connection: HubConnection): void {
    this.#subscriptions.leaveAll(connection);
  }
}

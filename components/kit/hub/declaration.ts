import type { Caller } from '#core/identity/claims.ts';
import type { PolicyName } from '#core/identity/policies.ts';
import type { CallerCheck } from '#kit/auth/auth.ts';
import type { Bus } from '#kit/bus/bus.ts';
import type { Timers } from '#kit/clock/timing.ts';
import type { Reader } from '#kit/db/db.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { RateLimiter } from '#kit/rate-limit/rate-limit.ts';
import type { Workload } from '#kit/workload/workload.ts';
import type { HubLimits } from './limits.ts';
import type { HubLog } from './log.ts';
import type { HubMethod } from './methods.ts';
import type { Subscription } from './subscriptions.ts';

/** What a component declares of a hub that sends the signals of its event log. */
export interface HubDeclaration<DB> {
  readonly path: `/hubs/${string}`;
  /** Methods that clients invoke; any other one is answered `Method not found.`. */
  readonly subscriptions: readonly Subscription[];
  /**
   * Groups of a connection from its start; none when absent. With `?since=` it first gets what it missed, and then
   * `Replayed(replayed, complete)`.
   */
  readonly groupsOf?: (caller: Caller) => readonly string[];
  readonly log: HubLog<DB>;
}

/** What a component declares of a hub whose methods answer the connection that called, and no other one. */
export interface MethodHubDeclaration<DB> {
  readonly path: `/hubs/${string}`;
  /** Requirement of callers besides that of every hub; judged when they connect and at each invocation. */
  readonly policy: PolicyName;
  /** Methods that clients invoke; any other one is answered `Method not found.`. */
  readonly methods: readonly HubMethod[];
  /** Counts the invocations of a user by the policy `Api`. */
  readonly limiter: Pick<RateLimiter, 'take'>;
  /** A schema with the table of `hubsMigration`. */
  readonly db: Reader<DB>;
  /** Bounds that differ from those of other hubs. */
  readonly limits?: Partial<HubLimits>;
}

export interface HubParts {
  readonly runtime: Runtime;
  readonly bus: Pick<Bus, 'subscribe'>;
  readonly authenticator: CallerCheck;
  /** This replica's identity, for requests of connections that another replica owns; without it there is one replica. */
  readonly workload?: Workload | undefined;
  /** Those of the process when absent; they do not keep it alive. */
  readonly timers?: Timers | undefined;
  readonly limits?: Partial<HubLimits> | undefined;
}

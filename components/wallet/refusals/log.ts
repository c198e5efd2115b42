import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';

/** What this service has refused to somebody, for the audit log of an organisation. */
export interface Refused {
  readonly organizationId: string;
  readonly action: string;
  readonly reason: string;
  readonly walletAddress: string;
  readonly platformUserId: string;
}

/** The same refusals of a minute. */
export interface GatheredRefusal extends Refused {
  readonly occurredAtMs: number;
  readonly occurrences: number;
}

export interface RefusalLogOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Hands refusals to the tenant service, at most `mostAtOnce` of them. */
  readonly report: (gathered: readonly GatheredRefusal[]) => Promise<void>;
}

export const mostAtOnce = 500;
/** Kept while the tenant service is away; more than these are only in the process's own log, which says so. */
const mostKept = 10_000;
const minuteMs = 60_000;

/**
 * Gathers refusals, so that somebody who tries on and on costs a call and a row a minute, and hands them over. What cannot be
 * handed over now is kept and handed over later: a refusal waits for nobody.
 */
export class RefusalLog {
  readonly #options: RefusalLogOptions;
  #gathered = new Map<string, GatheredRefusal>();
  #isFailing = false;

  constructor(options: RefusalLogOptions) {
    this.#options = options;
  }

  count(refused: Refused): void {
    this.#add({ ...refused, occurredAtMs: this.#options.clock.nowMs(), occurrences: 1 });
  }

  /** Hands over what was gathered; never rejects. */
  async flush(): Promise<void> {
    const gathered = [...this.#gathered.values()];
    this.#gathered = new Map();
    for (let from = 0; from < gathered.length; from += mostAtOnce) {
      const some = gathered.slice(from, from + mostAtOnce);
      const isKept = await this.#handOver(some);
      if (isKept) continue;
      for (const each of gathered.slice(from)) this.#add(each);
      return;
    }
  }

  /** False when it is to be tried again. */
  async #handOver(some: readonly GatheredRefusal[]): Promise<boolean> {
    const { log, report } = this.#options;
    try {
      await report(some);
      if (this.#isFailing) log.info('refusals are reported again');
      this.#isFailing = false;
      return true;
    } catch (error) {
      if (isAppError(error, 'invalid') || isAppError(error, 'forbidden')) {
        log.error(
          { err: error, refusals: some },
          'the tenant service does not take refusals of this service',
        );
        return true;
      }
      if (!this.#isFailing) log.warn({ err: error }, 'refusals cannot be reported now and wait');
      this.#isFailing = true;
      return false;
    }
  }

  #add(one: GatheredRefusal): void {
    const { organizationId, action, reason, walletAddress, platformUserId, occurredAtMs } = one;
    const minute = Math.floor(occurredAtMs / minuteMs);
    const key = JSON.stringify([organizationId, action, reason, walletAddress, platformUserId, minute]);
    const known = this.#gathered.get(key);
    if (known === undefined && this.#gathered.size >= mostKept) {
      this.#options.log.warn({ refused: one }, 'a refusal is not reported: too many wait');
      return;
    }
    const occurrences = one.occurrences + (known?.occurrences ?? 0);
    this.#gathered.set(key, { ...(known ?? one), occurrences });
  }
}

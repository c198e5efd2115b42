import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';

const windowMs = 10_000;
const maxFaults = 50;
/** Bound of tracked validators, above any installation's size. */
const maxAccounts = 1_024;

interface Account {
  faults: number;
  sinceMs: number;
}

/**
 * Counts protocol violations by validator. A validator with too many of them in a window is ignored until the window ends, so
 * that a faulty peer cannot exhaust the others.
 */
export class PeerScore {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #count: (reason: string) => void;
  readonly #accounts = new Map<string, Account>();

  constructor(clock: Clock, log: Logger, count: (reason: string) => void) {
    this.#clock = clock;
    this.#log = log;
    this.#count = count;
  }

  reportFault(validatorId: string, reason: string): void {
    this.#count(reason);
    const account = this.#account(validatorId);
    account.faults += 1;
    if (account.faults === 1) this.#log.warn({ validatorId, reason }, 'a validator sent a faulty message');
    if (account.faults === maxFaults)
      this.#log.error(
        { validatorId },
        'a validator sent too many faulty messages and is ignored for a while',
      );
  }

  isBanned(validatorId: string): boolean {
    return this.#accounts.has(validatorId) && this.#account(validatorId).faults >= maxFaults;
  }

  #account(validatorId: string): Account {
    const nowMs = this.#clock.nowMs();
    let account = this.#accounts.get(validatorId);
    if (account === undefined || nowMs - account.sinceMs >= windowMs) {
      account = { faults: 0, sinceMs: nowMs };
      this.#accounts.delete(validatorId);
      this.#accounts.set(validatorId, account);
      const [oldest] = this.#accounts.keys();
      if (this.#accounts.size > maxAccounts && oldest !== undefined) this.#accounts.delete(oldest);
    }
    return account;
  }
}

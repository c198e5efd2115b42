import type { Logger } from '#kit/log/log.ts';
import type { Register } from '../sealing/register-chain.ts';
import type { Scheduler } from '../sealing/scheduler.ts';
import { isMember } from './intake.ts';

export interface HandoverOptions {
  readonly self: string;
  readonly scheduler: Scheduler;
  readonly log: Logger;
  find(registerId: string): Register | undefined;
  /** Fast-forwards to the register service's state, so that sealed transactions no longer wait here. */
  jump(registerId: string): Promise<unknown>;
  /** Announces the waiting transactions to the current members. */
  remind(register: Register): void;
}

const retryMs = { first: 250, last: 30_000 } as const;

/**
 * Transfers the pool of a register whose set this validator has left: transactions that it accepted and that the current
 * members may not know are announced to them until all are sealed.
 */
export class Handover {
  readonly #options: HandoverOptions;
  readonly #watched = new Set<string>();

  constructor(options: HandoverOptions) {
    this.#options = options;
  }

  /** The set has changed or a transaction was accepted: starts the transfer if this validator is no member. */
  watch(registerId: string): void {
    if (this.#watched.has(registerId) || !this.#isDue(registerId)) return;
    this.#watched.add(registerId);
    this.#schedule(registerId, retryMs.first);
  }

  #isDue(registerId: string): boolean {
    const register = this.#options.find(registerId);
    return register?.isOpen === true && register.pool.size > 0 && !isMember(register, this.#options.self);
  }

  #schedule(registerId: string, afterMs: number): void {
    this.#options.scheduler.set(
      `handover/${registerId}`,
      afterMs,
      () => void this.#offer(registerId, afterMs),
    );
  }

  async #offer(registerId: string, waitedMs: number): Promise<void> {
    const { jump, find, remind, log } = this.#options;
    try {
      await jump(registerId);
    } catch (error) {
      log.debug(
        { err: error, registerId },
        'the register service did not answer; the transfer of transactions continues without it',
      );
    }
    const register = find(registerId);
    if (register === undefined || !this.#isDue(registerId)) {
      this.#watched.delete(registerId);
      return;
    }
    remind(register);
    this.#schedule(registerId, Math.min(waitedMs * 2, retryMs.last));
  }
}

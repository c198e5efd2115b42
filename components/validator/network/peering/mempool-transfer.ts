import type { Scheduler } from '#kit/clock/timers.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { isMember } from '../../chain/state/state.ts';

interface MempoolTransferOptions {
  readonly self: string;
  readonly scheduler: Scheduler;
  readonly log: Logger;
  find(registerId: string): RegisterChain | undefined;
  /** Fast-forwards to the register service's state, so that sealed transactions no longer wait here. */
  fastForward(registerId: string): Promise<unknown>;
  /** Announces the waiting transactions to the current members. */
  reannounce(register: RegisterChain): void;
}

const retryMs = { first: 250, last: 30_000 } as const;

/**
 * Transfers the pool of a register whose set this validator has left: transactions that it accepted and that the current
 * members may not know are announced to them until all are sealed.
 */
export class MempoolTransfer {
  readonly #options: MempoolTransferOptions;
  readonly #watched = new Set<string>();

  constructor(options: MempoolTransferOptions) {
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
      `transfer/${registerId}`,
      afterMs,
      () => void this.#offer(registerId, afterMs),
    );
  }

  async #offer(registerId: string, waitedMs: number): Promise<void> {
    const { fastForward, find, reannounce, log } = this.#options;
    try {
      await fastForward(registerId);
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
    reannounce(register);
    this.#schedule(registerId, Math.min(waitedMs * 2, retryMs.last));
  }
}

import type { Logger } from '#kit/log/log.ts';
import type { Register } from '../sealing/register.ts';
import type { Scheduler } from '../sealing/scheduler.ts';
import { isMember } from './intake.ts';

export interface HandoverOptions {
  readonly self: string;
  readonly scheduler: Scheduler;
  readonly log: Logger;
  find(registerId: string): Register | undefined;
  /** Goes on from where the register service is, so that what was sealed meanwhile waits here no more. */
  jump(registerId: string): Promise<unknown>;
  /** Names what waits here to those who decide now. */
  remind(register: Register): void;
}

const retryMs = { first: 250, last: 30_000 } as const;

/**
 * A validator that has left the set of a register may hold transactions that were accepted here and that nobody else
 * knows: it offers them to those who decide now until all of them are sealed.
 */
export class Handover {
  readonly #options: HandoverOptions;
  readonly #watched = new Set<string>();

  constructor(options: HandoverOptions) {
    this.#options = options;
  }

  /** The set of a register has changed, or something was accepted: there is work when this validator is outside. */
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
      log.debug({ err: error, registerId }, 'the register service does not say what is sealed');
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

import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Timing } from '../../kube/time.ts';
import type { Registers } from '../../platform/registers.ts';

/** After a count that failed: how long nobody asks, and when the tenants that went without look again. */
export const COUNT_AGAIN_MS = 30_000;

interface Counting {
  /** Of the installation. */
  readonly namespace: string;
  readonly organizationId: string;
  readonly registers: Pick<Registers, 'count'>;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/**
 * The number of registers of an organisation is nice to know: a service that did not tell it is left alone for a while,
 * so that its silence holds up the tenants that are asked about just then and not every one of them.
 */
export class RegisterCount {
  readonly #timing: Timing;
  /** When somebody may ask again, by namespace of the installation. */
  readonly #freeAtMs = new Map<string, number>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  /** Undefined while nobody tells. */
  async find({ namespace, organizationId, registers, signal, log }: Counting): Promise<number | undefined> {
    const freeAtMs = this.#freeAtMs.get(namespace);
    if (freeAtMs !== undefined && this.#timing.monotonicMs() < freeAtMs) return undefined;
    try {
      const count = await registers.count(organizationId, signal);
      this.#freeAtMs.delete(namespace);
      return count;
    } catch (error) {
      if (!isAppError(error)) throw error;
      log.debug({ err: error }, 'The registers of the organisation were not counted');
      this.#freeAtMs.set(namespace, this.#timing.monotonicMs() + COUNT_AGAIN_MS);
      return undefined;
    }
  }
}

import { isAppError } from '#core/errors/errors.ts';
import type { Timing } from '#kit/clock/timing.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Registers } from '../../platform/registers.ts';

/** Pause after a failed count; tenants without a count are reconciled again after it. */
export const countAgainMs = 30_000;

interface CountRequest {
  /** Namespace of the installation. */
  readonly namespace: string;
  readonly organizationId: string;
  readonly registers: Pick<Registers, 'count'>;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/**
 * Counts the registers of organisations. The count is not essential: after a failure the service is not queried for a
 * while, so that its timeout does not delay the reconcile of every tenant.
 */
export class RegisterCount {
  readonly #timing: Timing;
  /** Earliest time of the next query, by namespace of the installation. */
  readonly #retryAtMs = new Map<string, number>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  /** Undefined while the count is unknown. */
  async find({
    namespace,
    organizationId,
    registers,
    signal,
    log,
  }: CountRequest): Promise<number | undefined> {
    const retryAtMs = this.#retryAtMs.get(namespace);
    if (retryAtMs !== undefined && this.#timing.monotonicMs() < retryAtMs) return undefined;
    try {
      const count = await registers.count(organizationId, signal);
      this.#retryAtMs.delete(namespace);
      return count;
    } catch (error) {
      if (!isAppError(error)) throw error;
      log.debug({ err: error }, 'The registers of the organisation could not be counted');
      this.#retryAtMs.set(namespace, this.#timing.monotonicMs() + countAgainMs);
      return undefined;
    }
  }
}

import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Ledger, RegisterFacts } from '../../chain/sealing/ports.ts';

/**
 * Time after an answer for which the register service counts as reachable. The members of a register in use ask it more
 * often: they write dockets, or verify every 500 ms which ones are stored.
 */
const freshMs = 1_000;

/** Whether the register service answers, by the calls of the whole process. */
export class Reach {
  readonly #clock: Clock;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  #isAway = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It answered a moment ago, and no call has failed since. */
  get isReachable(): boolean {
    // Absolute: a clock that is set back leaves the answer in the future.
    return !this.#isAway && Math.abs(this.#clock.nowMs() - this.#answeredAtMs) < freshMs;
  }

  /** The same register service, whose answers are observed. */
  watch(ledger: Ledger, onFacts: (facts: RegisterFacts, askedAtMs: number) => void): Ledger {
    const observed = <T>(call: Promise<T>) => this.#observe(call);
    const nowMs = () => this.#clock.nowMs();
    return {
      lookup: (queries) => observed(ledger.lookup(queries)),
      writeDocket: (sealed, attestations) => observed(ledger.writeDocket(sealed, attestations)),
      appendAttestation: (registerId, docketNumber, vote) =>
        observed(ledger.appendAttestation(registerId, docketNumber, vote)),
      async findRegister(registerId) {
        const askedAtMs = nowMs();
        const facts = await observed(ledger.findRegister(registerId));
        if (facts !== undefined) onFacts(facts, askedAtMs);
        return facts;
      },
      listMemberRegisters: () => observed(ledger.listMemberRegisters()),
      isSubscribed: (organizationId, registerId) => observed(ledger.isSubscribed(organizationId, registerId)),
      findTransaction: (registerId, txId) => observed(ledger.findTransaction(registerId, txId)),
      readKeys: (registerId, signal) => ledger.readKeys(registerId, signal),
    };
  }

  async #observe<T>(call: Promise<T>): Promise<T> {
    try {
      const answer = await call;
      this.#answeredAtMs = this.#clock.nowMs();
      this.#isAway = false;
      return answer;
    } catch (error) {
      if (isAppError(error, 'unavailable') || isAppError(error, 'timeout')) this.#isAway = true;
      throw error;
    }
  }
}

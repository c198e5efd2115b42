import { refusal } from '../errors.ts';
import type { Registers, SignedTransaction } from '../ledger/registers.ts';

/** A double of the register service. */
export class TestRegisters implements Registers {
  readonly known = new Set<string>();
  /** In the order of their first submission. */
  readonly submitted = new Map<string, SignedTransaction>();
  readonly sealed = new Set<string>();
  /** Number of submissions, repetitions included. */
  submissions = 0;
  isAway = false;
  /** Why transactions are refused. */
  refusedWith: string | undefined;

  async exists(registerId: string) {
    this.#assertHere();
    return this.known.has(registerId);
  }

  async stateOf(_registerId: string, transactionId: string) {
    this.#assertHere();
    if (this.sealed.has(transactionId)) return 'sealed' as const;
    return this.submitted.has(transactionId) ? ('pending' as const) : ('unknown' as const);
  }

  async submit(transaction: SignedTransaction) {
    this.#assertHere();
    this.submissions += 1;
    if (this.refusedWith !== undefined) return this.refusedWith;
    if (!this.submitted.has(transaction.id)) this.submitted.set(transaction.id, transaction);
    return undefined;
  }

  #assertHere(): void {
    if (this.isAway) throw refusal('REGISTERS_UNAVAILABLE');
  }
}

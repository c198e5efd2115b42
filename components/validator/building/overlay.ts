import { findPublication } from '#core/blueprint/publication.ts';
import type { Violation } from '#core/errors/errors.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import { applyControl, beginDocket, type DocketFold, foldControl } from '#core/ledger/governance/apply.ts';
import type { ControlContext } from '#core/ledger/governance/control.ts';
import { acceptsAlgorithms, judgeCrypto } from '#core/ledger/governance/policies.ts';
import { parseRecord } from '#core/ledger/record.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { controlOf, type RegisterState } from '../sealing/state.ts';

/** What of a transaction the rules look at. */
export type Ruled = Omit<PooledTransaction, 'exclusivePredecessor' | 'addedAtMs'>;

/** Where the next docket of a state is judged. */
export function contextOf(state: RegisterState, timestamp: string): ControlContext {
  return { docketNumber: state.height, timestamp, verifier: state.verifier };
}

/** Whether the id follows from the envelope or, for publications of blueprints, from what is published. */
function isDerived({ bound, record, payload }: Ruled): boolean {
  return bound || findPublication(parseRecord(record), payload) !== undefined;
}

/** What the policies in force say of one transaction, whatever else is in its docket. Genesis is exempt (D13). */
export function judgePolicies(state: RegisterState, transaction: Ruled): Violation[] {
  const { maxTransactionBytes, requireBoundTxId } = state.rules;
  const { cryptoPolicy } = state.ledger;
  const isFine =
    transaction.sizeBytes <= maxTransactionBytes &&
    (!requireBoundTxId || isDerived(transaction)) &&
    acceptsAlgorithms(cryptoPolicy, transaction.algorithms);
  if (isFine || transaction.type === 'Genesis') return [];
  const found = judgeCrypto(cryptoPolicy, transaction.algorithms).filter(
    ({ severity }) => severity !== 'Warning',
  );
  if (transaction.sizeBytes > maxTransactionBytes) found.push(validationViolation('VAL_SIZE_001'));
  if (requireBoundTxId && !isDerived(transaction)) {
    found.push(validationViolation('VAL_STRUCT_011', 'TransactionId'));
  }
  return found;
}

/** Everything that the register's own rules say of one transaction that would be alone in the next docket. */
export function judgeAlone(
  state: RegisterState,
  transaction: Ruled,
  timestamp: string,
): readonly Violation[] {
  const found = judgePolicies(state, transaction);
  if (found.length > 0 || transaction.type !== 'Control') return found;
  const applied = applyControl(state.ledger, controlOf(transaction), contextOf(state, timestamp));
  return 'violations' in applied ? applied.violations : [];
}

/** The rules as they become while a docket is put together: its control transactions build on one another. */
export class Overlay {
  readonly #state: RegisterState;
  readonly #context: ControlContext;
  #fold: DocketFold;

  constructor(state: RegisterState, timestamp: string) {
    this.#state = state;
    this.#context = contextOf(state, timestamp);
    this.#fold = beginDocket(state.ledger, this.#context);
  }

  /** Takes all of a line of transactions, in order, or nothing of it; what is left out may fit another docket. */
  take(line: readonly PooledTransaction[]): boolean {
    let fold: DocketFold | undefined = this.#fold;
    for (const transaction of line) {
      fold = this.#next(fold, transaction);
      if (fold === undefined) return false;
    }
    this.#fold = fold;
    return true;
  }

  #next(fold: DocketFold, transaction: PooledTransaction): DocketFold | undefined {
    if (judgePolicies(this.#state, transaction).length > 0) return undefined;
    if (transaction.type !== 'Control') return fold;
    const next = foldControl(fold, controlOf(transaction), this.#context);
    return 'violations' in next ? undefined : next;
  }
}

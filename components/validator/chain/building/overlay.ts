import { findPublication } from '#core/blueprint/publication.ts';
import { findTimestamp } from '#core/encoding/timestamp.ts';
import type { Violation } from '#core/errors/errors.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import { applyControl, beginDocket, type DocketFold, foldControl } from '#core/ledger/governance/apply.ts';
import type { ControlContext } from '#core/ledger/governance/control.ts';
import { acceptsAlgorithms, judgeCrypto } from '#core/ledger/governance/policies.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { judgeWorkflow } from '../pool/step.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { controlOf, type RegisterState } from '../state/state.ts';

/** A transaction before its predecessor is resolved; the policies judge it. */
type UnlinkedTransaction = Omit<PooledTransaction, 'exclusivePredecessor' | 'addedAtMs'>;

/** The context in which the next docket of a state is judged. */
export function contextOf(state: RegisterState, timestamp: string): ControlContext {
  return { docketNumber: state.height, timestamp, verifier: state.verifier };
}

/** Whether the id is derived from the envelope or, for blueprint publications, from the published blueprint. */
function isDerived({ bound, record, payload }: UnlinkedTransaction): boolean {
  return bound || findPublication(parseRecord(record), payload) !== undefined;
}

/** Judges one transaction by the policies in force, independent of the rest of its docket. Genesis is exempt. */
export function judgePolicies(state: RegisterState, transaction: UnlinkedTransaction): Violation[] {
  const { maxTransactionBytes, requireBoundTxId } = state.rules;
  const { cryptoPolicy } = state.ledger;
  const isAcceptable =
    transaction.sizeBytes <= maxTransactionBytes &&
    (!requireBoundTxId || isDerived(transaction)) &&
    acceptsAlgorithms(cryptoPolicy, transaction.algorithms);
  if (isAcceptable || transaction.type === 'Genesis') return [];
  const found = judgeCrypto(cryptoPolicy, transaction.algorithms).filter(
    ({ severity }) => severity !== 'Warning',
  );
  if (transaction.sizeBytes > maxTransactionBytes) found.push(validationViolation('VAL_SIZE_001'));
  if (requireBoundTxId && !isDerived(transaction)) {
    found.push(validationViolation('VAL_STRUCT_011', 'TransactionId'));
  }
  return found;
}

/** Judges one transaction by the register's own rules, as if it were alone in the next docket. */
export function judgeAlone(
  state: RegisterState,
  transaction: UnlinkedTransaction,
  timestamp: string,
): readonly Violation[] {
  const found = judgePolicies(state, transaction);
  if (found.length > 0 || transaction.type !== 'Control') return found;
  const applied = applyControl(state.ledger, controlOf(transaction), contextOf(state, timestamp));
  return 'violations' in applied ? applied.violations : [];
}

/** A decided transaction that is still in the pool. */
type FindDecided = (txId: string) => PooledTransaction | undefined;

/** Speculative rules while a docket is assembled: each control transaction builds on the previous ones. */
export class Overlay {
  readonly #state: RegisterState;
  readonly #context: ControlContext;
  readonly #nowTicks: bigint;
  readonly #find: FindDecided;
  /** Steps of the docket, which later ones may follow. */
  readonly #steps = new Map<string, PooledTransaction>();
  #fold: DocketFold;

  constructor(state: RegisterState, timestamp: string, find: FindDecided) {
    this.#state = state;
    this.#nowTicks = findTimestamp(timestamp) ?? 0n;
    this.#find = find;
    this.#context = contextOf(state, timestamp);
    this.#fold = beginDocket(state.ledger, this.#context);
  }

  /** Accepts all of these transactions, in order, or none; a rejected group may fit a later docket. */
  take(chain: readonly PooledTransaction[]): boolean {
    let fold: DocketFold | undefined = this.#fold;
    const steps = new Map<string, PooledTransaction>();
    const find = (txId: string) => steps.get(txId) ?? this.#steps.get(txId) ?? this.#find(txId);
    for (const transaction of chain) {
      fold = this.#next(fold, transaction);
      if (fold === undefined) return false;
      if (judgeWorkflow(transaction, { nowTicks: this.#nowTicks, find }).length > 0) return false;
      if (transaction.step !== undefined) steps.set(transaction.txId, transaction);
    }
    for (const [txId, step] of steps) this.#steps.set(txId, step);
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

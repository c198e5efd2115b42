import type { LookupAnswer, LookupQuery } from '../../chain/keys/lookup.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { PinnedWorkflow } from '../../chain/workflows/pinned-workflows.ts';

/** A question about a transaction: is it sealed, what is its predecessor, and does it repeat another one? */
export interface Question {
  readonly register: RegisterChain;
  readonly query: LookupQuery;
  /** Type of the predecessor where the register's keys need not tell it: in the pool, or in the same docket. */
  typeHere(): string | undefined;
  /** The workflow of a step, where it is known without a question. */
  readonly pinned: PinnedWorkflow | undefined;
}

type QueriedTransaction = Pick<
  PooledTransaction,
  'registerId' | 'txId' | 'previousTransactionId' | 'replayKey' | 'step'
>;

/**
 * What is asked about a transaction.
 * @param typeHere type of the predecessor where the register's keys need not tell it; it is called with the predecessor's id,
 * which is empty when there is none
 */
export function questionOf(
  register: RegisterChain,
  { registerId, txId: transactionId, previousTransactionId = '', replayKey = '', step }: QueriedTransaction,
  typeHere: (previous: string) => string | undefined,
): Question {
  const pinned = step && register.workflows.find(step.pin);
  const pin = pinned === undefined ? (step?.pin ?? '') : '';
  return {
    register,
    query: { registerId, transactionId, previousTransactionId, replayKey, pin },
    pinned,
    typeHere: () => typeHere(previousTransactionId),
  };
}

/**
 * The workflow of the question's step; undefined for other transactions, and for a pin that the register service does not
 * know.
 * @throws AppError unavailable when it cannot be read
 */
export async function loadPinned(
  { register, query, pinned }: Question,
  answer: LookupAnswer | undefined,
): Promise<PinnedWorkflow | undefined> {
  return answer?.pinKnown === true ? register.workflows.load(query.pin) : pinned;
}

/** The answer of the register's keys as of this moment; undefined when only the register service can tell. */
export function answerOfKeys({ register, query, typeHere }: Question): LookupAnswer | undefined {
  return register.keys.answer(register.state.height, query, typeHere());
}

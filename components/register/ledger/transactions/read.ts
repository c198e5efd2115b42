import { findTxId } from '#core/ledger/register-id.ts';
import type { Reader } from '#kit/db/db.ts';
import type { UnsealedTransaction, ValidatorAddress, Validators } from '../../clients/validators.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { askAll, type FindMembers } from '../../registers/directory/ask.ts';
import type { Register } from '../../registers/state/store.ts';
import type { SealedRow } from '../sealed/rows/store.ts';
import { findSealed, type KeyedRegister, sealedFacts } from '../sealed/store.ts';
import type { Segments } from '../segments/segments.ts';

export interface ReadDeps {
  readonly db: Reader<RegisterSchema>;
  readonly validators: Validators;
  readonly findMembers: FindMembers;
  readonly segments: Pick<Segments, 'of'>;
}

type FoundTransaction =
  | { readonly kind: 'sealed'; readonly row: SealedRow }
  | { readonly kind: 'unsealed'; readonly transaction: UnsealedTransaction };

/** Precedence while members disagree: a member that still holds the transaction outweighs one that dropped it. */
const precedence: Readonly<Record<UnsealedTransaction['status'], number>> = {
  pending: 0,
  rejected: 1,
  expired: 2,
};

/** The id in a path; any other text names no transaction. */
export function txIdOf(text: string): string {
  const id = findTxId(text);
  if (id === undefined) throw refusal('TX_NOT_FOUND');
  return id;
}

/** A register, with the segments in which to look up its keys. */
export function keyed({ segments }: Pick<ReadDeps, 'segments'>, register: Register): KeyedRegister {
  return { registerNo: register.registerNo, keySegments: segments.of(register) };
}

async function findUnsealed(
  deps: ReadDeps,
  register: Register,
  txId: string,
): Promise<UnsealedTransaction | undefined> {
  const members = await deps.findMembers(register.registerNo);
  const ask = (at: ValidatorAddress) => deps.validators.find(at, register.registerId, [txId]);
  // One member that still holds it suffices.
  const enough = (found: readonly UnsealedTransaction[]) => found.some((one) => one.status === 'pending');
  const { answers, majority } = await askAll(members, ask, { enough });
  const found = answers
    .flat()
    .filter((one) => one.txId === txId)
    .toSorted((left, right) => precedence[left.status] - precedence[right.status]);
  if (found.length === 0 && !majority) {
    throw refusal('VALIDATOR_UNAVAILABLE', {
      message: 'Too few validators could be reached; retry later.',
      retryAfterSeconds: 1,
    });
  }
  return found[0];
}

/** A transaction from the ledger, or from a validator of the register while it is not sealed. */
export async function getTransaction(
  deps: ReadDeps,
  register: Register,
  txId: string,
): Promise<FoundTransaction> {
  const row = await findSealed(deps.db, keyed(deps, register), txId);
  if (row !== undefined) return { kind: 'sealed', row };
  const transaction = await findUnsealed(deps, register, txId);
  if (transaction !== undefined) return { kind: 'unsealed', transaction };
  // It may have been sealed between the two look-ups.
  const later = await findSealed(deps.db, keyed(deps, register), txId);
  if (later === undefined) throw refusal('TX_NOT_FOUND');
  return { kind: 'sealed', row: later };
}

/** A sealed transaction; a pending one is a conflict, an unknown one is not found. */
export async function getSealed(deps: ReadDeps, register: Register, txId: string): Promise<SealedRow> {
  const found = await getTransaction(deps, register, txId);
  if (found.kind === 'sealed') return found.row;
  throw refusal('TX_NOT_SEALED');
}

/** Transactions requested from each validator; a list of pending transactions for people needs no more. */
const maxPending = 1_000;

/**
 * Pending transactions, oldest first, as reported by the reachable validators. A lagging member may still list stored
 * transactions, which are removed.
 */
export async function listPending(deps: ReadDeps, register: Register): Promise<UnsealedTransaction[]> {
  const members = await deps.findMembers(register.registerNo);
  const ask = (at: ValidatorAddress) => deps.validators.listPending(at, register.registerId, maxPending);
  const { answers } = await askAll(members, ask);
  const byId = new Map(answers.flatMap((answer) => answer.items).map((one) => [one.txId, one]));
  const sealed = await sealedFacts(deps.db, keyed(deps, register), [...byId.keys()]);
  return [...byId.values()]
    .filter(({ txId }) => !sealed.has(txId))
    .toSorted((left, right) => left.atMs - right.atMs);
}

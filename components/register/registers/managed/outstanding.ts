import { isAppError } from '#core/errors/errors.ts';
import type { Database } from '#kit/db/db.ts';
import type { Validators } from '../../clients/validators.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { unfiltered } from '../../ledger/segments/store.ts';
import { getTransaction } from '../../ledger/transactions/read.ts';
import type { FindMembers } from '../directory/ask.ts';
import type { Register } from '../state/store.ts';
import { forgetChanges, listChanges, type SubmittedChange } from './store.ts';

export interface OutstandingDeps {
  readonly database: Database<RegisterSchema>;
  readonly validators: Validators;
  readonly findMembers: FindMembers;
}

/** Whether a transaction is outstanding: neither known to be sealed nor known to be refused. */
async function isOutstanding(
  deps: OutstandingDeps,
  register: Register,
  { txId }: SubmittedChange,
): Promise<boolean> {
  const { validators, findMembers } = deps;
  const reads = { db: deps.database.read, validators, findMembers, segments: unfiltered };
  try {
    const found = await getTransaction(reads, register, txId);
    return found.kind === 'unsealed' && found.transaction.status === 'pending';
  } catch (error) {
    if (isAppError(error, 'not_found')) return false;
    if (isAppError(error, 'unavailable')) return true;
    throw error;
  }
}

/** The operator's control transactions that are not sealed yet; the others are deleted from the list. */
export async function listOutstanding(
  deps: OutstandingDeps,
  register: Register,
): Promise<readonly SubmittedChange[]> {
  const changes = await listChanges(deps.database.read, register.registerNo);
  if (changes.length === 0) return [];
  const waiting = await Promise.all(changes.map((change) => isOutstanding(deps, register, change)));
  const done = changes.filter((_, index) => !waiting[index]).map(({ txId }) => txId);
  if (done.length > 0) await deps.database.transact((tx) => forgetChanges(tx, register.registerNo, done));
  return changes.filter((_, index) => waiting[index]);
}

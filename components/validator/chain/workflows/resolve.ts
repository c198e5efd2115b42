import type { LookupAnswer, LookupQuery } from '../keys/lookup.ts';
import type { Step } from '../pool/step.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { PinnedWorkflow, PinnedWorkflows } from './pinned-workflows.ts';

/** The step with what was looked up about it. */
export function resolveStep(
  step: Step,
  pinned: PinnedWorkflow | undefined,
  answer: Pick<LookupAnswer, 'previousKnown' | 'previousType' | 'previousRouting'> | undefined,
): Step {
  const { previousTransactionId: txId } = step.record;
  const isSealed = txId !== undefined && answer?.previousKnown === true;
  const sealed = isSealed
    ? { txId, type: answer.previousType, routing: answer.previousRouting || undefined }
    : undefined;
  return {
    ...step,
    context: { workflow: pinned?.workflow, isPinKnown: pinned !== undefined, sealed },
  };
}

const lookupBatch = 500;

/**
 * Looks up what the steps of the log need, since the log holds records only. Other transactions are returned as they are.
 * @throws AppError unavailable or timeout
 */
export async function resolveLogged<T extends { readonly transaction: PooledTransaction }>(
  ledger: { lookup(queries: readonly LookupQuery[]): Promise<readonly LookupAnswer[]> },
  workflows: PinnedWorkflows,
  logged: readonly T[],
): Promise<T[]> {
  const steps = logged.flatMap(({ transaction }) => transaction.step ?? []);
  const queries = logged.flatMap(({ transaction }): LookupQuery[] => {
    const { registerId, txId: transactionId, previousTransactionId = '', step } = transaction;
    if (step === undefined) return [];
    return [{ registerId, transactionId, previousTransactionId, replayKey: '', pin: step.pin }];
  });
  const resolved = new Map<Step, Step>();
  for (let at = 0; at < queries.length; at += lookupBatch) {
    const answers = await ledger.lookup(queries.slice(at, at + lookupBatch));
    for (const [index, step] of steps.slice(at, at + lookupBatch).entries()) {
      const answer = answers[index];
      const pinned = answer?.pinKnown === true ? await workflows.load(step.pin) : undefined;
      resolved.set(step, resolveStep(step, pinned, answer));
    }
  }
  return logged.map((each) => {
    const step = each.transaction.step && resolved.get(each.transaction.step);
    return step === undefined ? each : { ...each, transaction: { ...each.transaction, step } };
  });
}

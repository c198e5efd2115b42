import type { z } from 'zod';
import { findClearPayload } from '#core/blueprint/payload/envelope.ts';
import { parseRouting } from '#core/blueprint/steps/routing.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { getAction, type PinnedDefinition } from '../instances/definitions.ts';
import type { LeasedOperation } from '../operations/operation.ts';
import type { operationStartedSchema, resultSchema } from './schemas.ts';
import { readSubmission } from './transaction.ts';

export function presentStarted({
  id,
  instanceId,
}: Pick<LeasedOperation, 'id' | 'instanceId'>): z.output<typeof operationStartedSchema> {
  return { operationId: id, isAsync: true, instanceId, transactionHash: null };
}

/**
 * The result of an accepted step on a register of development; undefined before its acceptance.
 * @param fileIds ids of the first chunks of its files
 */
export function presentResult(
  operation: LeasedOperation,
  pinned: PinnedDefinition,
  fileIds: readonly string[],
): z.output<typeof resultSchema> | undefined {
  const { submission, txId, isAccepted } = operation;
  if (submission === undefined || txId === undefined || !isAccepted) return undefined;
  const { routing: routingText, createdAt, payload } = readSubmission(submission);
  const routing = parseRouting(routingText);
  if (routing === undefined) throw new Error('a stored routing cannot be parsed');
  const data = findClearPayload(canonicalBytes(payload))?.data ?? {};
  const names = Object.keys(getAction(pinned, operation.actionId).calculations ?? {});
  const calculations = Object.entries(data).filter(([name]) => names.includes(name));
  return {
    accepted: true,
    ...(operation.status !== 'Complete' && { pending: 'awaiting-seal' as const }),
    operationId: operation.id,
    transactionHash: txId,
    instanceId: operation.instanceId,
    serializedTransaction: submission.toString(),
    fileTransactionHashes: [...fileIds],
    timestamp: new Date(createdAt).toISOString(),
    nextActions: routing.nextActions.map(({ actionId, branchKey }) => ({
      actionId,
      participantId: getAction(pinned, actionId).sender,
      ...(branchKey !== undefined && { branchKey }),
    })),
    calculations: Object.fromEntries(calculations),
    isComplete: routing.ended !== undefined,
    warnings: [...operation.warnings],
  };
}

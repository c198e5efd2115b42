import { judgeStep } from '#core/blueprint/steps/judge.ts';
import type { Workflow } from '#core/blueprint/steps/workflow.ts';
import { findTimestamp } from '#core/encoding/timestamp.ts';
import type { SealedStep } from './step.ts';

/** The members of an instance that its next step depends on. */
interface InstanceHead {
  readonly lastTxId: string;
  readonly seq: number;
  /** Text of the last step's routing. */
  readonly routing: string;
}

/** Why a sealed step changes nothing. */
export type IgnoredStep = 'known' | 'second_start' | 'not_next' | 'refused';

/**
 * Judges whether a sealed step continues its instance as this service knows it. The validators have judged it; it is
 * judged again because a register may have had validators that did not know the rules.
 * @param head undefined for an instance without a step
 * @param workflow of the step's pin; undefined when the pin does not resolve
 * @returns undefined for the next step of the instance
 */
export function judgeSealed(
  { placed, routing }: SealedStep,
  head: InstanceHead | undefined,
  workflow: Workflow | undefined,
): IgnoredStep | undefined {
  const { record, sealedAt } = placed;
  if (head !== undefined) {
    if (routing.seq === 0) return head.seq === 0 && head.lastTxId === record.txId ? 'known' : 'second_start';
    if (routing.seq <= head.seq) return 'known';
    if (record.previousTransactionId !== head.lastTxId) return 'not_next';
  } else if (routing.seq !== 0) {
    return 'not_next';
  }
  const violations = judgeStep(record, {
    workflow,
    isPinKnown: workflow !== undefined,
    predecessor:
      head === undefined ? undefined : { txId: head.lastTxId, type: 'Action', routing: head.routing },
    nowTicks: findTimestamp(sealedAt) ?? 0n,
  });
  return violations.length === 0 ? undefined : 'refused';
}

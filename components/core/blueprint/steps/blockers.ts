import { findTimestamp } from '../../encoding/timestamp.ts';
import { type IndexSet, isMember, reachable } from './reachability.ts';
import type { CurrentAction } from './routing.ts';
import type { Workflow, WorkflowAction } from './workflow.ts';

/** The actions that are, or can reach by routes without passing the action, one of its required actions. */
export function blockingActions(workflow: Workflow, action: WorkflowAction): IndexSet {
  const required = action.requiredPriorActions.flatMap((id) => workflow.actions.get(id)?.index ?? []);
  return reachable(workflow.backwards, required, action.index);
}

/**
 * Current actions that an action has to wait for, ascending: those that are, or can reach by routes without passing the
 * action, one of its required actions. Current actions whose deadline is before `nowTicks` (100 ns since the epoch) do
 * not count.
 */
export function listBlockers(
  workflow: Workflow,
  current: readonly CurrentAction[],
  actionId: number,
  nowTicks: bigint,
): number[] {
  const action = workflow.actions.get(actionId);
  if (action === undefined || action.requiredPriorActions.length === 0) return [];
  const blocking = blockingActions(workflow, action);
  return current.flatMap((other) => {
    const index = workflow.actions.get(other.actionId)?.index;
    const blocks = index !== undefined && isMember(blocking, index) && !isExpired(other, nowTicks);
    return blocks ? other.actionId : [];
  });
}

/** Whether the deadline of a current action is before a moment, ticks of 100 ns since the epoch. */
export function isExpired({ until }: CurrentAction, nowTicks: bigint): boolean {
  const ticks = until === undefined ? undefined : findTimestamp(until);
  return ticks !== undefined && ticks < nowTicks;
}

import { blockingActions } from '../blockers.ts';
import { BRANCH_SEPARATOR, segmentText } from '../branches.ts';
import { type IndexSet, include, indexSet, isMember, membersOf } from '../reachability.ts';
import type { Workflow, WorkflowAction, WorkflowRoute } from '../workflow.ts';
import { openParticipants } from '../worst-routing.ts';

// The bound of routings in its plainest form, which its fast form must equal.

const ADDRESS_LENGTH = 61;
const UUID_LENGTH = 36;
const HASH_LENGTH = 64;
const DEADLINE = '2026-01-01T00:00:00.0000000+00:00';

/** Characters that one entry of a list needs, its comma included. */
interface EntryLength {
  readonly next: number;
  readonly current: number;
}

function jsonLength(value: unknown): number {
  return JSON.stringify(value).length;
}

function longest(lengths: Iterable<number>): number {
  let most = 0;
  for (const length of lengths) most = Math.max(most, length);
  return most;
}

function sum(lengths: Iterable<number>): number {
  let total = 0;
  for (const length of lengths) total += length;
  return total;
}

function targetSets({ actions }: Workflow, { routes, rejection }: WorkflowAction): number[][] {
  const sets = [...routes.values()].map(({ nextActionIds }) => nextActionIds);
  const back = rejection?.targetActionId;
  return [...sets, back === undefined ? [] : [back]].map((ids) =>
    ids.flatMap((id) => actions.get(id)?.index ?? []),
  );
}

/**
 * For each action the actions that may be current beside it: a superset of what steps can reach. Two actions are together
 * at the start, behind a fan-out, and when a step of one beside the other activates it; an action that waits for another
 * takes no step beside it.
 */
export function plainConcurrentActions(workflow: Workflow): readonly IndexSet[] {
  const list = [...workflow.actions.values()];
  const together = list.map(() => indexSet(list.length, []));
  const open: [number, number][] = [];
  const add = (one: number, other: number) => {
    const [set, back] = [together[one], together[other]];
    if (one === other || set === undefined || back === undefined || isMember(set, other)) return;
    include(set, other);
    include(back, one);
    open.push([one, other], [other, one]);
  };
  const addAll = (indexes: readonly number[]) => {
    for (const one of indexes) for (const other of indexes) add(one, other);
  };
  const targets = list.map((action) => targetSets(workflow, action));
  const blocking = list.map((action) => blockingActions(workflow, action));
  addAll(list.flatMap(({ isStarting, index }) => (isStarting ? index : [])));
  for (const sets of targets) for (const set of sets) addAll(set);
  const successors = targets.map((sets) => [...new Set(sets.flat())]);
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [taken, other] = pair;
    const waits = blocking[taken];
    if (waits !== undefined && isMember(waits, other)) continue;
    for (const next of successors[taken] ?? []) add(next, other);
  }
  return together;
}

/** Length of the longest branch key of an action, and whether one of its branches may have a deadline. */
interface KeyLength {
  length: number;
  hasDeadline: boolean;
}

/** The actions that are reachable from an action without passing another one. */
function reachOf(workflow: Workflow, start: number, avoided: WorkflowAction): ReadonlySet<number> {
  const found = new Set(start === avoided.id ? [] : [start]);
  for (const id of found) {
    for (const { nextActionIds } of workflow.actions.get(id)?.routes.values() ?? [])
      for (const next of nextActionIds) if (next !== avoided.id) found.add(next);
  }
  return found;
}

/** Whether an action is in a branch of a fan-out: reachable from exactly one of its targets. */
function isInBranch(workflow: Workflow, fanOut: WorkflowAction, route: WorkflowRoute, id: number): boolean {
  return route.nextActionIds.filter((target) => reachOf(workflow, target, fanOut).has(id)).length === 1;
}

/** Adds the longest segment that the fan-outs of one action give to each action in their branches. */
function addSegments(workflow: Workflow, action: WorkflowAction, keys: readonly KeyLength[]): void {
  for (const { id, index } of workflow.actions.values()) {
    const key = keys[index];
    const around = [...action.routes.values()].filter(
      (route) => route.nextActionIds.length > 1 && isInBranch(workflow, action, route, id),
    );
    if (key === undefined || around.length === 0) continue;
    const lengths = around.map((route) => jsonLength(segmentText({ action, route, index: 0 })) - 2);
    key.length += BRANCH_SEPARATOR.length + longest(lengths);
    key.hasDeadline ||= around.some(({ deadlineTicks }) => deadlineTicks !== undefined);
  }
}

/** A key has at most one segment of each fan-out, because no branch contains its own fan-out. */
function longestKeys(workflow: Workflow): KeyLength[] {
  const keys = [...workflow.actions.values()].map(() => ({ length: 0, hasDeadline: false }));
  for (const action of workflow.actions.values()) addSegments(workflow, action, keys);
  return keys;
}

function entryLengths(workflow: Workflow): EntryLength[] {
  const keys = longestKeys(workflow);
  return [...workflow.actions.values()].map(({ id, index }) => {
    const key = keys[index] ?? { length: 0, hasDeadline: false };
    // Between two segments is one character; the first one has none before it.
    const branchKey = key.length === 0 ? 0 : jsonLength('branchKey') + jsonLength('') + 1 + key.length;
    const until = key.hasDeadline ? jsonLength('until') + jsonLength(DEADLINE) + 2 : 0;
    const next = jsonLength({ actionId: id }) + 1 + branchKey;
    return { next, current: next + until };
  });
}

/**
 * Upper bound of the sum of lengths over actions that are all together: actions that exclude each other share a group,
 * and at most one of each group is current.
 */
function groupedLength(
  indexes: readonly number[],
  together: readonly IndexSet[],
  lengths: readonly number[],
): number {
  const groups: { beside: IndexSet; length: number }[] = [];
  const lengthOf = (index: number) => lengths[index] ?? 0;
  for (const index of [...indexes].sort((one, other) => lengthOf(other) - lengthOf(one))) {
    const own = together[index] ?? indexSet(together.length, []);
    const group = groups.find(({ beside }) => !isMember(beside, index));
    if (group === undefined) groups.push({ beside: own.slice(), length: lengthOf(index) });
    else for (const [at, word] of own.entries()) group.beside[at] = (group.beside[at] ?? 0) | word;
  }
  return sum(groups.map(({ length }) => length));
}

function longestCurrent(workflow: Workflow, entries: readonly EntryLength[]): number {
  const together = plainConcurrentActions(workflow);
  const lengths = entries.map(({ current }) => current);
  return longest(together.map((set, index) => groupedLength([index, ...membersOf(set)], together, lengths)));
}

function longestNext(workflow: Workflow, entries: readonly EntryLength[]): number {
  const sets = [...workflow.actions.values()].flatMap((action) => targetSets(workflow, action));
  return longest(sets.map((set) => sum(set.map((index) => entries[index]?.next ?? 0))));
}

/**
 * Upper bound of the length of any routing of a workflow, in the units of MAX_ROUTING_LENGTH, for any order of its
 * steps. Close for branches that run one action after the other; publishing refuses what it says could be too long.
 */
export function plainWorstRoutingLength(workflow: Workflow): number {
  const entries = entryLengths(workflow);
  const routes = [...workflow.actions.values()].flatMap((action) => [...action.routes.values()]);
  const member = (name: string, length: number) => jsonLength(name) + 2 + length;
  const reason = longest(routes.flatMap(({ reasons }) => [...reasons].map(jsonLength)));
  const fixed = jsonLength({
    v: 1,
    instanceId: '0'.repeat(UUID_LENGTH),
    blueprintDefinitionTxId: '0'.repeat(HASH_LENGTH),
    seq: Number.MAX_SAFE_INTEGER,
    completedActionId: longest(workflow.actions.keys()),
    isRejection: true,
    nextActions: [],
    current: [],
    roles: {},
    ended: 'Completed',
  });
  return (
    fixed +
    member('routeId', longest(routes.map(({ id }) => jsonLength(id)))) +
    (reason === 0 ? 0 : member('reasonCode', reason)) +
    longestNext(workflow, entries) +
    longestCurrent(workflow, entries) +
    sum(openParticipants(workflow).map((id) => member(id, ADDRESS_LENGTH + 2)))
  );
}

import { blockingActions } from './blockers.ts';
import { BRANCH_SEPARATOR, branchMembers, reachableFrom, segmentText } from './branches.ts';
import {
  type IndexSet,
  include,
  includeAll,
  includeNew,
  indexSet,
  isMember,
  without,
} from './reachability.ts';
import type { Workflow, WorkflowAction } from './workflow.ts';

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
export function concurrentActions(workflow: Workflow): readonly IndexSet[] {
  const list = [...workflow.actions.values()];
  // Each action is beside itself until the end, so that it is never new.
  const together = list.map(({ index }) => indexSet(list.length, [index]));
  const open: [number, number][] = [];
  /** Each pair is added once, however often it is met. */
  const addAll = (set: IndexSet, other: number) => {
    for (const one of includeNew(together[other] ?? set, set)) {
      include(together[one] ?? set, other);
      open.push([one, other], [other, one]);
    }
  };
  const addEach = (indexes: readonly number[]) => {
    const set = indexSet(list.length, indexes);
    for (const index of indexes) addAll(set, index);
  };
  const targets = list.map((action) => targetSets(workflow, action));
  const blocking = list.map((action) => blockingActions(workflow, action));
  addEach(list.flatMap(({ isStarting, index }) => (isStarting ? index : [])));
  for (const sets of targets) for (const set of sets) addEach(set);
  const successors = targets.map((sets) => indexSet(list.length, sets.flat()));
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [taken, other] = pair;
    const [waits, next] = [blocking[taken], successors[taken]];
    if (waits === undefined || next === undefined || isMember(waits, other)) continue;
    addAll(next, other);
  }
  return together.map((set, index) => without(set, indexSet(list.length, [index])));
}

/** Length of the longest branch key of an action, and whether one of its branches may have a deadline. */
interface KeyLength {
  length: number;
  hasDeadline: boolean;
}

/** Adds the longest segment that the fan-outs of one action give to each action in their branches. */
function addSegments(workflow: Workflow, action: WorkflowAction, keys: readonly KeyLength[]): void {
  const reach = reachableFrom(workflow, action);
  const segments = [...action.routes.values()]
    .filter(({ nextActionIds }) => nextActionIds.length > 1)
    .map((route) => ({ route, length: jsonLength(segmentText({ action, route, index: 0 })) - 2 }))
    .sort((one, other) => other.length - one.length);
  const covered = indexSet(keys.length, []);
  const timed = indexSet(keys.length, []);
  for (const { route, length } of segments) {
    const members = branchMembers(workflow, route, reach);
    // The longest come first, so an action that is covered has its segment.
    for (const key of includeNew(covered, members).map((at) => keys[at])) {
      if (key !== undefined) key.length += BRANCH_SEPARATOR.length + length;
    }
    if (route.deadlineTicks !== undefined) includeNew(timed, members);
  }
  keys.forEach((key, index) => {
    key.hasDeadline ||= isMember(timed, index);
  });
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
 * @param indexes the longest first
 */
function groupedLength(
  indexes: readonly number[],
  together: readonly IndexSet[],
  lengths: readonly number[],
): number {
  const groups: IndexSet[] = [];
  let total = 0;
  for (const index of indexes) {
    const own = together[index] ?? indexSet(together.length, []);
    const group = groups.find((beside) => !isMember(beside, index));
    if (group !== undefined) {
      includeAll(group, own);
      continue;
    }
    groups.push(own.slice());
    total += lengths[index] ?? 0;
  }
  return total;
}

function longestCurrent(workflow: Workflow, entries: readonly EntryLength[]): number {
  const together = concurrentActions(workflow);
  const lengths = entries.map(({ current }) => current);
  const lengthOf = (index: number) => lengths[index] ?? 0;
  const longestFirst = [...lengths.keys()].sort((one, other) => lengthOf(other) - lengthOf(one));
  const candidates = together
    .map((set, index) => {
      const others = longestFirst.filter((other) => isMember(set, other));
      const at = others.findIndex((other) => lengthOf(other) <= lengthOf(index));
      return others.toSpliced(at === -1 ? others.length : at, 0, index);
    })
    .map((indexes) => ({ indexes, most: sum(indexes.map(lengthOf)) }))
    .sort((one, other) => other.most - one.most);
  let found = 0;
  for (const { indexes, most } of candidates) {
    // Grouping makes no sum longer, so no later candidate exceeds what was found.
    if (most <= found) break;
    found = Math.max(found, groupedLength(indexes, together, lengths));
  }
  return found;
}

function longestNext(workflow: Workflow, entries: readonly EntryLength[]): number {
  const sets = [...workflow.actions.values()].flatMap((action) => targetSets(workflow, action));
  return longest(sets.map((set) => sum(set.map((index) => entries[index]?.next ?? 0))));
}

/** Participants that a step or the start of an instance binds to a wallet. */
export function openParticipants({ participants }: Workflow): string[] {
  return [...participants].flatMap(([id, address]) => (address === undefined ? id : []));
}

/**
 * Upper bound of the length of any routing of a workflow, in the units of MAX_ROUTING_LENGTH, for any order of its
 * steps. Close for branches that run one action after the other; publishing refuses what it says could be too long.
 */
export function worstRoutingLength(workflow: Workflow): number {
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

import { findTimestamp } from '../../encoding/timestamp.ts';
import {
  exclusiveMembers,
  type IndexSet,
  isMember,
  reachable,
  sharedMembers,
  without,
} from './reachability.ts';
import { type CurrentAction, deadlineText } from './routing.ts';
import type { Workflow, WorkflowAction, WorkflowRoute } from './workflow.ts';

export const BRANCH_SEPARATOR = '/';

/** One branch of one fan-out: the target at `index` of a route of the action. */
interface Segment {
  readonly action: WorkflowAction;
  readonly route: WorkflowRoute;
  readonly index: number;
}

/** A current action with the branches that it is in, outermost first. */
export interface Entry {
  readonly action: WorkflowAction;
  readonly path: readonly Segment[];
  /** Ticks of 100 ns, whole microseconds. */
  readonly untilTicks?: bigint | undefined;
}

/** Escapes the separator of branch keys in the id of a route. */
function escapeRouteId(id: string): string {
  return id.replaceAll('%', '%25').replaceAll(BRANCH_SEPARATOR, '%2F');
}

function unescapeRouteId(text: string): string {
  return text.replaceAll('%2F', BRANCH_SEPARATOR).replaceAll('%25', '%');
}

/** `{action}.{route}.{index}` */
export function segmentText({ action, route, index }: Segment): string {
  return `${action.id}.${escapeRouteId(route.id)}.${index}`;
}

/** The parts of a segment's text: the index of the branch follows the last dot, for ids of routes may contain dots. */
export function segmentParts(text: string): { actionId: string; routeId: string; index: string } {
  const first = text.indexOf('.');
  const last = text.lastIndexOf('.');
  return {
    actionId: text.slice(0, Math.max(first, 0)),
    routeId: unescapeRouteId(text.slice(first + 1, Math.max(first + 1, last))),
    index: text.slice(last + 1),
  };
}

/** The branches that contain a branch, outermost first, and itself. */
export function branchKeys(key: string): string[] {
  const segments = key.split(BRANCH_SEPARATOR);
  return segments.map((_, at) => segments.slice(0, at + 1).join(BRANCH_SEPARATOR));
}

function findSegment(workflow: Workflow, text: string): Segment | undefined {
  const parts = segmentParts(text);
  const action = workflow.actions.get(Number(parts.actionId));
  const route = action?.routes.get(parts.routeId);
  const index = Number(parts.index);
  if (action === undefined || route?.nextActionIds[index] === undefined) return undefined;
  const segment = { action, route, index };
  return segmentText(segment) === text ? segment : undefined;
}

function findPath(workflow: Workflow, key: string | undefined): readonly Segment[] | undefined {
  const path: Segment[] = [];
  for (const text of key === undefined ? [] : key.split(BRANCH_SEPARATOR)) {
    const segment = findSegment(workflow, text);
    if (segment === undefined) return undefined;
    path.push(segment);
  }
  return path;
}

function findEntry(workflow: Workflow, current: CurrentAction): Entry | undefined {
  const action = workflow.actions.get(current.actionId);
  const path = findPath(workflow, current.branchKey);
  if (action === undefined || path === undefined) return undefined;
  return {
    action,
    path,
    untilTicks: current.until === undefined ? undefined : findTimestamp(current.until),
  };
}

/** Finds the current actions in a workflow; undefined when one of them is not of it. */
export function findEntries(workflow: Workflow, current: readonly CurrentAction[]): Entry[] | undefined {
  const entries: Entry[] = [];
  for (const each of current) {
    const entry = findEntry(workflow, each);
    if (entry === undefined) return undefined;
    entries.push(entry);
  }
  return entries;
}

/** An entry as routings write it; absent members are left out. */
export function currentAction({ action, path, untilTicks }: Entry): CurrentAction {
  const until = untilTicks === undefined ? undefined : deadlineText(untilTicks);
  return {
    actionId: action.id,
    ...(path.length > 0 && { branchKey: path.map(segmentText).join(BRANCH_SEPARATOR) }),
    ...(until !== undefined && { until }),
  };
}

/** The actions that are reachable from an action's targets without passing the action, by target; each computed once. */
export function reachableFrom(workflow: Workflow, action: WorkflowAction): (targetId: number) => IndexSet {
  const known = new Map<number, IndexSet>();
  return (targetId) => {
    const index = workflow.actions.get(targetId)?.index ?? action.index;
    const found = known.get(index) ?? reachable(workflow.graph, [index], action.index, known);
    known.set(index, found);
    return found;
  };
}

/**
 * Region of each branch of a fan-out, by index: the actions that are reachable from its target without passing the
 * fan-out's own action and from no other target. The actions that two targets reach are joins, and belong to no branch.
 */
export function branchRegions(workflow: Workflow, { action, route }: Omit<Segment, 'index'>): IndexSet[] {
  const reached = route.nextActionIds.map(reachableFrom(workflow, action));
  const joins = sharedMembers(workflow.graph.length, reached);
  return reached.map((set) => without(set, joins));
}

/** The actions in any branch of a fan-out: branches of one fan-out have no action in common. */
export function branchMembers(
  { graph }: Workflow,
  { nextActionIds }: WorkflowRoute,
  reach: (targetId: number) => IndexSet,
): IndexSet {
  return exclusiveMembers(graph.length, nextActionIds.map(reach));
}

function isInside(workflow: Workflow, segment: Segment, action: WorkflowAction): boolean {
  const region = branchRegions(workflow, segment)[segment.index];
  return region !== undefined && isMember(region, action.index);
}

/** The entry in the branches that its action is still in. Without a branch that has a deadline it has none either. */
export function settle(workflow: Workflow, entry: Entry): Entry {
  const { action, untilTicks } = entry;
  const left = entry.path.findIndex((segment) => !isInside(workflow, segment, action));
  const path = left === -1 ? entry.path : entry.path.slice(0, left);
  return { action, path, untilTicks: hasDeadline(path) ? untilTicks : undefined };
}

function hasDeadline(path: readonly Segment[]): boolean {
  return path.some(({ route }) => route.deadlineTicks !== undefined);
}

/** The earlier of two moments; undefined is never. */
export function earlier(one: bigint | undefined, other: bigint | undefined): bigint | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return one < other ? one : other;
}

function isSame(one: Segment | undefined, other: Segment | undefined): boolean {
  return one?.action === other?.action && one?.route === other?.route && one?.index === other?.index;
}

/** One entry for two of the same action: in the branches that both are in, with the earlier deadline. */
export function merge(one: Entry, other: Entry): Entry {
  const parting = one.path.findIndex((segment, at) => !isSame(segment, other.path[at]));
  const path = parting === -1 ? one.path : one.path.slice(0, parting);
  const untilTicks = hasDeadline(path) ? earlier(one.untilTicks, other.untilTicks) : undefined;
  return { action: one.action, path, untilTicks };
}

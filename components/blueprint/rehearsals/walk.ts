import type { Action, Blueprint } from '#core/blueprint/model/blueprint.ts';
import type { RehearsalNote } from '../database/rehearsal-tables.ts';
import type { InstanceStep } from '../instances/accumulated-state.ts';

export const stepStatuses = ['Pending', 'Current', 'Done', 'Skipped'] as const;
export const logKinds = ['info', 'sealed', 'gate', 'routed', 'delivered', 'error'] as const;

interface WalkStep {
  readonly actionId: number;
  readonly title: string;
  /** The participant that takes it. */
  readonly actingRole: string;
  readonly status: (typeof stepStatuses)[number];
}

interface LogEntry {
  readonly at: string;
  readonly kind: (typeof logKinds)[number];
  readonly message: string;
  readonly txId?: string;
}

interface WalkRoute {
  readonly actionId: number;
  readonly routeId: string;
  readonly nextActionIds: readonly number[];
}

/** A workflow with the steps that were taken in it. */
export interface Walked {
  readonly blueprint: Blueprint;
  readonly steps: readonly Pick<InstanceStep, 'actionId' | 'isRejection' | 'routing' | 'sealedAt' | 'txId'>[];
  /** Actions that may be taken next; none behind the end. */
  readonly current: readonly number[];
  readonly hasEnded: boolean;
  readonly notes: readonly RehearsalNote[];
}

/** What a walk showed of a workflow: its actions, what happened, and the routes that were taken and those never taken. */
export interface Walk {
  readonly steps: readonly WalkStep[];
  readonly log: readonly LogEntry[];
  /** In the order of the steps; one that was taken again is there again. */
  readonly routesTaken: readonly WalkRoute[];
  readonly routesNotTaken: readonly WalkRoute[];
}

export function walkOf(walked: Walked): Walk {
  const { blueprint } = walked;
  const routesTaken = walked.steps.flatMap((step) => routeTaken(blueprint, step) ?? []);
  const taken = new Set(routesTaken.map(keyOf));
  return {
    steps: blueprint.actions.map((action) => stepOf(action, walked)),
    log: logOf(walked),
    routesTaken,
    routesNotTaken: routesOf(blueprint).filter((route) => !taken.has(keyOf(route))),
  };
}

/** The role that acts next: the sender of the first action that may be taken. */
export function nextRole(blueprint: Blueprint, current: readonly number[]): string | undefined {
  return blueprint.actions.find(({ id }) => id === current[0])?.sender;
}

function stepOf({ id, title, sender }: Action, { steps, current, hasEnded }: Walked): WalkStep {
  const isDone = steps.some(({ actionId, isRejection }) => actionId === id && !isRejection);
  const other = isDone ? 'Done' : hasEnded ? 'Skipped' : 'Pending';
  const status = !hasEnded && current.includes(id) ? 'Current' : other;
  return { actionId: id, title, actingRole: sender, status };
}

function routesOf({ actions }: Blueprint): WalkRoute[] {
  return actions.flatMap(({ id, routes = [] }) =>
    routes.map((route) => ({ actionId: id, routeId: route.id, nextActionIds: route.nextActionIds })),
  );
}

function keyOf({ actionId, routeId }: WalkRoute): string {
  return `${actionId} ${routeId}`;
}

function routeTaken(
  blueprint: Blueprint,
  { actionId, isRejection, routing }: Walked['steps'][number],
): WalkRoute | undefined {
  if (isRejection || routing.routeId === undefined) return undefined;
  return routesOf(blueprint).find(
    (route) => route.actionId === actionId && route.routeId === routing.routeId,
  );
}

/** What steps did and what was noted, by time; what has the same time is in the order of the steps. */
function logOf({ blueprint, steps, notes }: Walked): LogEntry[] {
  const entries: LogEntry[] = [...notes, ...steps.flatMap((step) => entriesOf(blueprint, step))];
  return entries.toSorted((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0));
}

function entriesOf(blueprint: Blueprint, step: Walked['steps'][number]): LogEntry[] {
  const { actionId, isRejection, routing, txId } = step;
  const action = blueprint.actions.find(({ id }) => id === actionId);
  if (action === undefined) return [];
  const at = step.sealedAt.toISOString();
  const next = routing.nextActions.map((each) => titleOf(blueprint, each.actionId)).join(', ');
  const target = next === '' ? 'the end' : next;
  const did = isRejection ? 'rejected' : 'took';
  const by = isRejection ? 'back' : `by the route ${routing.routeId ?? 'of its end'}`;
  const readers = new Set((action.disclosures ?? []).map(({ participantAddress }) => participantAddress));
  return [
    { at, kind: 'sealed', message: `${action.sender} ${did} ${action.title}`, txId },
    { at, kind: 'routed', message: `${action.title} leads ${by} to ${target}` },
    ...(isRejection || readers.size === 0
      ? []
      : [{ at, kind: 'delivered' as const, message: `shown to ${[...readers].join(', ')}` }]),
  ];
}

function titleOf({ actions }: Blueprint, actionId: number): string {
  return actions.find(({ id }) => id === actionId)?.title ?? String(actionId);
}

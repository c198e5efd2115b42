import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { findDuration } from './duration.ts';
import { type Graph, indexSet, reversed } from './reachability.ts';
import { isAddressForm } from './routing.ts';

/** Limits of a definition, which the ledger demands of publications too. */
const MAX_ACTIONS = 200;
const MAX_PARTICIPANTS = 32;
const MAX_NEXT_ACTIONS = 8;

export interface WorkflowRoute {
  readonly id: string;
  /** Each once. None ends the branch, several are a fan-out. */
  readonly nextActionIds: readonly number[];
  /** Ticks of 100 ns that the branches of a fan-out have; absent without a deadline, and for other routes. */
  readonly deadlineTicks?: bigint | undefined;
  /** Reason codes of its decision notice. */
  readonly reasons: ReadonlySet<string>;
}

interface WorkflowRejection {
  /** Absent for a terminal rejection. */
  readonly targetActionId?: number | undefined;
}

export interface WorkflowAction {
  readonly id: number;
  /** Position in the definition, by which graphs name it. */
  readonly index: number;
  readonly sender: string;
  readonly isStarting: boolean;
  readonly requiredPriorActions: readonly number[];
  /** By id; empty when the action ends its branch. */
  readonly routes: ReadonlyMap<string, WorkflowRoute>;
  /** Absent when the action cannot be rejected. */
  readonly rejection?: WorkflowRejection | undefined;
}

/** The part of a definition that decides which step may follow which, and by whom. */
export interface Workflow {
  readonly blueprintId: string;
  /** Wallet addresses by participant; undefined for an open participant, which its first step binds. */
  readonly participants: ReadonlyMap<string, string | undefined>;
  readonly actions: ReadonlyMap<number, WorkflowAction>;
  /** Successors of each action by routes; rejections are no edges. */
  readonly graph: Graph;
  /** Predecessors of each action by routes. */
  readonly backwards: Graph;
}

/** What a malformed member throws within this file; compileWorkflow answers undefined. */
class Malformed extends Error {}

function refuse(member: string): never {
  throw new Malformed(`${member} is malformed`);
}

/** A member of an object; null counts as absent, as it does for the hashes of a definition. */
function member(value: JsonObject, name: string): unknown {
  return Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
}

function objectOf(value: unknown, name: string): JsonObject {
  return isJsonObject(value) ? value : refuse(name);
}

function listOf(value: unknown, name: string, most = Number.POSITIVE_INFINITY): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) && value.length <= most ? value : refuse(name);
}

function textOf(value: unknown, name: string): string {
  return typeof value === 'string' && value !== '' && value.isWellFormed() ? value : refuse(name);
}

function actionIdOf(value: unknown, name: string): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : refuse(name);
}

function flagOf(value: unknown, name: string): boolean {
  return value === undefined ? false : typeof value === 'boolean' ? value : refuse(name);
}

/** A map of items by key; refused when a key is there twice. */
function keyed<Key, Value>(items: readonly (readonly [Key, Value])[], name: string): ReadonlyMap<Key, Value> {
  const map = new Map(items);
  return map.size === items.length ? map : refuse(name);
}

function participantsOf(definition: JsonObject): Workflow['participants'] {
  const list = listOf(member(definition, 'participants'), 'participants', MAX_PARTICIPANTS);
  const items = list.map((item) => {
    const participant = objectOf(item, 'participants');
    const address = member(participant, 'walletAddress');
    if (address !== undefined && !isAddressForm(address)) refuse('walletAddress');
    return [textOf(member(participant, 'id'), 'id'), address] as const;
  });
  return keyed(items, 'participants');
}

function reasonsOf(route: JsonObject): ReadonlySet<string> {
  const notice = member(route, 'x-decision-notice');
  if (notice === undefined) return new Set();
  const reasons = member(objectOf(notice, 'x-decision-notice'), 'reasons');
  return new Set(reasons === undefined ? [] : Object.keys(objectOf(reasons, 'reasons')));
}

function deadlineOf(route: JsonObject): bigint | undefined {
  const text = member(route, 'branchDeadline');
  if (text === undefined) return undefined;
  return (typeof text === 'string' ? findDuration(text) : undefined) ?? refuse('branchDeadline');
}

function routeOf(item: unknown): WorkflowRoute {
  const route = objectOf(item, 'routes');
  const targets = listOf(member(route, 'nextActionIds'), 'nextActionIds', MAX_NEXT_ACTIONS);
  const nextActionIds = targets.map((target) => actionIdOf(target, 'nextActionIds'));
  if (new Set(nextActionIds).size !== nextActionIds.length) refuse('nextActionIds');
  const deadlineTicks = deadlineOf(route);
  return {
    id: textOf(member(route, 'id'), 'id'),
    nextActionIds,
    deadlineTicks: nextActionIds.length > 1 ? deadlineTicks : undefined,
    reasons: reasonsOf(route),
  };
}

function rejectionOf(action: JsonObject): WorkflowRejection | undefined {
  const value = member(action, 'rejectionConfig');
  if (value === undefined) return undefined;
  const config = objectOf(value, 'rejectionConfig');
  if (flagOf(member(config, 'isTerminal'), 'isTerminal')) return {};
  return { targetActionId: actionIdOf(member(config, 'targetActionId'), 'targetActionId') };
}

function actionOf(item: unknown, index: number): WorkflowAction {
  const action = objectOf(item, 'actions');
  const required = listOf(member(action, 'requiredPriorActions'), 'requiredPriorActions');
  const routes = listOf(member(action, 'routes'), 'routes').map(routeOf);
  return {
    id: actionIdOf(member(action, 'id'), 'id'),
    index,
    sender: textOf(member(action, 'sender'), 'sender'),
    isStarting: flagOf(member(action, 'isStartingAction'), 'isStartingAction'),
    requiredPriorActions: [...new Set(required.map((id) => actionIdOf(id, 'requiredPriorActions')))],
    routes: keyed(
      routes.map((route) => [route.id, route]),
      'routes',
    ),
    rejection: rejectionOf(action),
  };
}

function targetsOf({ routes, rejection }: WorkflowAction): Set<number> {
  const targets = new Set([...routes.values()].flatMap(({ nextActionIds }) => nextActionIds));
  return rejection?.targetActionId === undefined ? targets : targets.add(rejection.targetActionId);
}

function graphOf(actions: Workflow['actions']): Graph {
  return [...actions.values()].map(({ routes }) => {
    const next = new Set([...routes.values()].flatMap(({ nextActionIds }) => nextActionIds));
    return indexSet(
      actions.size,
      [...next].map((id) => actions.get(id)?.index ?? refuse('nextActionIds')),
    );
  });
}

function compile(definition: JsonObject): Workflow {
  const participants = participantsOf(definition);
  const items = listOf(member(definition, 'actions'), 'actions', MAX_ACTIONS).map(actionOf);
  const actions = keyed(
    items.map((action) => [action.id, action]),
    'actions',
  );
  for (const action of items) {
    if (!participants.has(action.sender)) refuse('sender');
    for (const target of targetsOf(action)) if (!actions.has(target)) refuse('target');
  }
  const graph = graphOf(actions);
  return {
    blueprintId: textOf(member(definition, 'id'), 'id'),
    participants,
    actions,
    graph,
    backwards: reversed(graph),
  };
}

/** Wallets by participant: those of closed participants, and of open ones that are bound. */
export function participantWallets(
  { participants }: Pick<Workflow, 'participants'>,
  bound: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> {
  const wallets = new Map<string, string>();
  for (const [participant, closed] of participants) {
    const wallet = closed ?? (Object.hasOwn(bound, participant) ? bound[participant] : undefined);
    if (wallet !== undefined) wallets.set(participant, wallet);
  }
  return wallets;
}

/**
 * Reads the members of a definition that judging steps needs: of participants id and wallet address; of actions id,
 * sender, start, required actions, routes with their targets, deadlines and reasons, and rejection. Undefined when one of
 * them is malformed: a ledger accepts publications that no blueprint service has checked. Every other member may hold
 * anything. Time and memory are at most proportional to the definition and to the square of its actions (200 at most).
 */
export function compileWorkflow(definition: JsonObject): Workflow | undefined {
  try {
    return compile(definition);
  } catch (error) {
    if (error instanceof Malformed) return undefined;
    throw error;
  }
}

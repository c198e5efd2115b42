import { findTimestamp } from '../../encoding/timestamp.ts';
import type { Violation } from '../../errors/errors.ts';
import { type ValidationCodeName, validationViolation } from '../../errors/validation-codes.ts';
import { isExpired, listBlockers } from './blockers.ts';
import { currentAction, type Entry, earlier, findEntries, merge, settle } from './branches.ts';
import { type CurrentAction, deadlineText, isAddressForm, ROUTING_VERSION, type Routing } from './routing.ts';
import type { Workflow, WorkflowAction, WorkflowRoute } from './workflow.ts';

/** A step as its sender wants it. */
export interface Step {
  readonly instanceId: string;
  /** Id of the publication that the instance runs by. */
  readonly pin: string;
  readonly actionId: number;
  /** Needed for an action that has routes, unless it is rejected. */
  readonly routeId?: string | undefined;
  readonly isRejection?: true | undefined;
  readonly reasonCode?: string | undefined;
  /** Wallet address. */
  readonly sender: string;
  /** ISO 8601 timestamp of the transaction. */
  readonly createdAt: string;
  /** Of a first step alone: wallet addresses of open participants other than its sender, bound from the start. */
  readonly boundRoles?: Readonly<Record<string, string>> | undefined;
}

interface Refusal {
  readonly violations: readonly Violation[];
}

interface Advance {
  readonly routing: Routing;
  /** The entry of the action before the step. */
  readonly taken: CurrentAction;
  /** Entries whose deadline was before createdAt: the step removes them. */
  readonly dropped: readonly CurrentAction[];
}

/** What a step changes: the actions that it activates, and the route that it takes. */
interface Effect {
  readonly activated: readonly Entry[];
  readonly route?: WorkflowRoute | undefined;
  readonly isTerminal?: true;
}

/** The state before a step. */
interface Before {
  readonly seq: number;
  readonly current: readonly CurrentAction[];
  readonly roles: Readonly<Record<string, string>>;
}

function refuse(code: ValidationCodeName, field: string, message?: string): Refusal {
  return { violations: [validationViolation(code, field, message)] };
}

function impossible(field: string, message: string): Refusal {
  return refuse('VAL_BP_003', field, message);
}

/** Finds why the bindings of a first step are not possible. */
function findRolesFault(workflow: Workflow, action: WorkflowAction, step: Step): Refusal | undefined {
  for (const [participant, address] of Object.entries(step.boundRoles ?? {})) {
    const isOpen =
      workflow.participants.has(participant) && workflow.participants.get(participant) === undefined;
    if (!isOpen || participant === action.sender || !isAddressForm(address)) {
      return impossible('roles', `${participant} cannot be bound by the first step.`);
    }
  }
  return undefined;
}

/** Before the first step every starting action is current. */
function begin(workflow: Workflow, step: Step): Before | Refusal {
  const action = workflow.actions.get(step.actionId);
  if (action?.isStarting !== true) return refuse('VAL_BP_001', 'actionId');
  const fault = findRolesFault(workflow, action, step);
  if (fault !== undefined) return fault;
  const starting = [...workflow.actions.values()].filter(({ isStarting }) => isStarting);
  const current = starting.map(({ id }) => ({ actionId: id }));
  return { seq: 0, current, roles: step.boundRoles ?? {} };
}

function proceed(before: Routing, step: Step): Before | Refusal {
  if (before.blueprintDefinitionTxId !== step.pin) {
    const message = 'The pin differs from that of the previous step.';
    return refuse('VAL_BP_VERSION_001', 'blueprintDefinitionTxId', message);
  }
  if (before.instanceId !== step.instanceId) {
    return impossible('instanceId', 'The previous transaction is a step of another instance.');
  }
  if (before.ended !== undefined) return impossible('previousTransactionId', 'The instance has ended.');
  if (step.boundRoles !== undefined)
    return impossible('roles', 'Only a first step binds roles other than its own.');
  return { seq: before.seq + 1, current: before.current, roles: before.roles };
}

/** The roles after the step; a refusal when its sender is not the participant. */
function bindSender(
  workflow: Workflow,
  action: WorkflowAction,
  roles: Before['roles'],
  sender: string,
): { readonly roles: Before['roles'] } | Refusal {
  const closed = workflow.participants.get(action.sender);
  const bound = closed ?? (Object.hasOwn(roles, action.sender) ? roles[action.sender] : undefined);
  if (bound !== undefined) return bound === sender ? { roles } : refuse('VAL_BP_002', 'senderAddress');
  return { roles: Object.fromEntries([...Object.entries(roles), [action.sender, sender]]) };
}

function actionOf(workflow: Workflow, id: number): WorkflowAction[] {
  const action = workflow.actions.get(id);
  return action === undefined ? [] : [action];
}

function reject(workflow: Workflow, own: Entry, step: Step): Effect | Refusal {
  const { rejection } = own.action;
  if (rejection === undefined) return impossible('actionId', 'The action cannot be rejected.');
  if (step.routeId !== undefined || step.reasonCode !== undefined) {
    return impossible('routeId', 'A rejection takes no route and has no reason of one.');
  }
  const { targetActionId } = rejection;
  if (targetActionId === undefined) return { activated: [], isTerminal: true };
  const targets = actionOf(workflow, targetActionId);
  return { activated: targets.map((action) => settle(workflow, { ...own, action })) };
}

/** The entries of a fan-out; undefined when its deadline is no timestamp. */
function fanOut(
  workflow: Workflow,
  own: Entry,
  route: WorkflowRoute,
  createdTicks: bigint,
): Entry[] | undefined {
  const { deadlineTicks } = route;
  // Whole microseconds, as timestamps are written.
  const dueTicks = deadlineTicks === undefined ? undefined : ((createdTicks + deadlineTicks) / 10n) * 10n;
  if (dueTicks !== undefined && deadlineText(dueTicks) === undefined) return undefined;
  const targets = route.nextActionIds.flatMap((id) => actionOf(workflow, id));
  return targets.map((action, index) => {
    const path = [...own.path, { action: own.action, route, index }];
    const settled = settle(workflow, { action, path, untilTicks: earlier(own.untilTicks, dueTicks) });
    // A target that is a join already is in no branch of this fan-out, so its deadline does not hold there.
    return settled.path.length === path.length ? settled : settle(workflow, { ...own, action });
  });
}

function takeRoute(workflow: Workflow, own: Entry, step: Step, createdTicks: bigint): Effect | Refusal {
  const { routes } = own.action;
  const route = step.routeId === undefined ? undefined : routes.get(step.routeId);
  if (step.routeId === undefined ? routes.size > 0 : route === undefined) {
    return impossible('routeId', 'The action has no such route.');
  }
  if (step.reasonCode !== undefined && route?.reasons.has(step.reasonCode) !== true) {
    return impossible('reasonCode', 'The reason is not one of the route.');
  }
  if (route === undefined) return { activated: [] };
  if (route.nextActionIds.length > 1) {
    const activated = fanOut(workflow, own, route, createdTicks);
    return activated === undefined
      ? impossible('createdAt', 'The deadline of the branches cannot be written.')
      : { activated, route };
  }
  const targets = route.nextActionIds.flatMap((id) => actionOf(workflow, id));
  return { activated: targets.map((action) => settle(workflow, { ...own, action })), route };
}

/** The entries after a step, ascending by action, with one for each action. */
function replace(entries: readonly Entry[], own: Entry, { activated, isTerminal }: Effect): readonly Entry[] {
  if (isTerminal) return [];
  const byAction = new Map(entries.filter((entry) => entry !== own).map((entry) => [entry.action.id, entry]));
  for (const entry of activated) {
    const known = byAction.get(entry.action.id);
    byAction.set(entry.action.id, known === undefined ? entry : merge(known, entry));
  }
  return [...byAction.values()].sort((one, other) => one.action.id - other.action.id);
}

function write(
  step: Step,
  { seq, roles }: Pick<Before, 'seq' | 'roles'>,
  effect: Effect,
  entries: readonly Entry[],
): Routing {
  const current = entries.map(currentAction);
  const activated = new Set(effect.activated.map(({ action }) => action.id));
  const next = current.filter(({ actionId }) => activated.has(actionId));
  const ended = effect.isTerminal ? 'Rejected' : 'Completed';
  return {
    v: ROUTING_VERSION,
    instanceId: step.instanceId,
    blueprintDefinitionTxId: step.pin,
    seq,
    completedActionId: step.actionId,
    ...(effect.route !== undefined && { routeId: effect.route.id }),
    nextActions: next.map(({ until: _, ...action }) => action),
    ...(step.isRejection && { isRejection: true }),
    ...(step.reasonCode !== undefined && { reasonCode: step.reasonCode }),
    current,
    roles,
    ...(current.length === 0 && { ended }),
  };
}

/** Finds why the action cannot be taken among the current actions that are not expired. */
function findObstacle(
  workflow: Workflow,
  live: readonly CurrentAction[],
  { actionId }: Step,
  createdTicks: bigint,
): Refusal | undefined {
  if (!live.some((each) => each.actionId === actionId)) {
    return impossible('actionId', `Action ${actionId} is not current.`);
  }
  const blockers = listBlockers(workflow, live, actionId, createdTicks);
  if (blockers.length === 0) return undefined;
  return impossible('actionId', `Action ${actionId} waits for ${blockers.join(', ')}.`);
}

/**
 * Computes the routing that a step leaves: the record's metadata holds it, and judging the record computes it
 * again. Refused with the codes of judgeStep when the step is not possible. Deadlines are compared with `createdAt`
 * alone; judgeStep compares them with the time of the docket too.
 * @param before the routing of the instance's last step; undefined for the first step
 */
export function advance(workflow: Workflow, before: Routing | undefined, step: Step): Advance | Refusal {
  const state = before === undefined ? begin(workflow, step) : proceed(before, step);
  if ('violations' in state) return state;
  const createdTicks = findTimestamp(step.createdAt);
  if (createdTicks === undefined) return impossible('createdAt', 'createdAt is no timestamp.');
  const live = state.current.filter((each) => !isExpired(each, createdTicks));
  const obstacle = findObstacle(workflow, live, step, createdTicks);
  if (obstacle !== undefined) return obstacle;
  const entries = findEntries(workflow, live);
  const own = entries?.find(({ action }) => action.id === step.actionId);
  if (entries === undefined || own === undefined) {
    return impossible('previousTransactionId', 'The previous state is not one of the definition.');
  }
  const bound = bindSender(workflow, own.action, state.roles, step.sender);
  if ('violations' in bound) return bound;
  const effect = step.isRejection
    ? reject(workflow, own, step)
    : takeRoute(workflow, own, step, createdTicks);
  if ('violations' in effect) return effect;
  const after = replace(entries, own, effect);
  return {
    routing: write(step, { seq: state.seq, roles: bound.roles }, effect, after),
    taken: currentAction(own),
    dropped: state.current.filter((each) => isExpired(each, createdTicks)),
  };
}

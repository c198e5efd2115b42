import type { Action, Route } from '../model/blueprint.ts';
import { errorAt, type Finding, warningAt } from '../model/finding.ts';
import {
  type Edge,
  edgesOf,
  inAction,
  type RuleContext,
  reachableActions,
  sees,
  startingActions,
} from './context.ts';

/** A workflow starts with an action that anyone may take, and every action can be reached from there. */
export function* starts(context: RuleContext): Generator<Finding> {
  const { blueprint, openIds, participantIds } = context;
  const starting = startingActions(context);
  if (starting.length === 0) {
    yield errorAt('/actions', 'VAL_BP_006', 'No action starts the workflow; set isStartingAction on one');
    return;
  }
  const reached = reachableActions(
    context,
    starting.map(({ id }) => id),
  );
  for (const [index, { id, sender, isStartingAction }] of blueprint.actions.entries()) {
    if (isStartingAction === true && participantIds.has(sender) && !openIds.has(sender)) {
      const message = `Participant ${sender} starts the workflow and must be open: remove its walletAddress`;
      yield errorAt(inAction(index, 'sender'), 'VAL_BP_010', message);
    }
    if (!reached.has(id)) {
      yield warningAt(inAction(index), 'VAL_BP_008', `No route leads to action ${id}`);
    }
  }
}

function* oneDefault(routes: readonly Route[], index: number): Generator<Finding> {
  const defaults = routes.flatMap(({ isDefault }, at) => (isDefault === true ? [at] : []));
  if (routes.length > 0 && defaults.length === 0) {
    const message = 'No route is taken when no condition is true; set isDefault on one';
    yield errorAt(inAction(index, 'routes'), 'VAL_BP_015', message);
  }
  for (const at of defaults.slice(1)) {
    yield errorAt(
      inAction(index, 'routes', at, 'isDefault'),
      'VAL_BP_014',
      'Another route is the default, too',
    );
  }
}

/** Every set of routes has exactly one default, and all others have conditions. */
export function* routeChoices({ blueprint }: RuleContext): Generator<Finding> {
  for (const [index, { routes = [] }] of blueprint.actions.entries()) {
    yield* oneDefault(routes, index);
    for (const [at, { condition, isDefault, branchDeadline, nextActionIds }] of routes.entries()) {
      const location = inAction(index, 'routes', at);
      if (condition === undefined && isDefault !== true) {
        yield errorAt(
          location,
          'VAL_BP_014',
          'The route has no condition and is no default: it is never taken',
        );
      }
      if (branchDeadline !== undefined && nextActionIds.length < 2) {
        const message = 'Only a route to several actions can have a branchDeadline';
        yield errorAt(`${location}/branchDeadline`, 'VAL_BP_FIELD', message);
      }
    }
  }
}

interface Closing {
  readonly edge: Edge;
  readonly target: number;
}

/** Edges that lead back to an action on the way to them, by a search in depth in the order of the definition. */
function closingEdges({ blueprint, actions }: RuleContext): Closing[] {
  const found: Closing[] = [];
  const states = new Map<number, 'open' | 'done'>();
  const visit = (action: Action): void => {
    states.set(action.id, 'open');
    for (const edge of edgesOf(action, blueprint.actions.indexOf(action))) {
      for (const target of new Set(edge.targets)) {
        const next = actions.get(target);
        const state = states.get(target);
        if (state === 'open') found.push({ edge, target });
        else if (next !== undefined && state === undefined) visit(next);
      }
    }
    states.set(action.id, 'done');
  };
  for (const action of actions.values())
    if (!states.has(action.id) && action.isStartingAction === true) visit(action);
  for (const action of actions.values()) if (!states.has(action.id)) visit(action);
  return found.sort((one, other) => one.edge.from - other.edge.from);
}

/** Actions that can be followed by routes to where a branch ends. */
function endingActions({ actions }: RuleContext): ReadonlySet<number> {
  const ending = new Set<number>();
  for (let before = -1; before !== ending.size; ) {
    before = ending.size;
    for (const { id, routes = [] } of actions.values()) {
      const ends =
        routes.length === 0 ||
        routes.some(({ nextActionIds }) => nextActionIds.every((next) => ending.has(next)));
      if (ends) ending.add(id);
    }
  }
  return ending;
}

/** A cycle that routes can leave is reported, one that they cannot leave is refused. */
export function* cycles(context: RuleContext): Generator<Finding> {
  const ending = endingActions(context);
  for (const { edge, target } of closingEdges(context)) {
    const location = edge.locate(target);
    if (edge.isRejection || ending.has(target)) {
      yield warningAt(
        location,
        'WARN_BP_CYCLE',
        `This leads back to action ${target}, which may be taken again`,
      );
    } else {
      const message = `This leads back to action ${target}, and no route leads out; add a route that ends the branch`;
      yield errorAt(location, 'VAL_BP_022', message);
    }
  }
}

/**
 * Nothing can be encrypted to an open participant before it is bound: data that are disclosed to it earlier need its
 * wallet at the creation of an instance.
 */
export function* openRecipients(context: RuleContext): Generator<Finding> {
  const { blueprint, openIds } = context;
  const starting = startingActions(context);
  const starters = new Set(starting.map(({ sender }) => sender));
  for (const id of openIds) {
    if (starters.has(id)) continue;
    const before = reachableActions(
      context,
      starting.map((action) => action.id),
      ({ sender }) => sender !== id,
    );
    const index = blueprint.actions.findIndex(
      (action) =>
        before.has(action.id) &&
        action.sender !== id &&
        action.disclosures.some(({ participantAddress }) => participantAddress === id),
    );
    if (index === -1) continue;
    const message = `Participant ${id} is not bound yet when this discloses data to it; name its wallet when an instance is created`;
    yield warningAt(inAction(index, 'disclosures'), 'WARN_BP_OPEN_RECIPIENT', message);
  }
}

/** The reference of an instance is shown to every participant, so all of them see its fields. */
export function* referenceFields(context: RuleContext): Generator<Finding> {
  const { blueprint, participantIds } = context;
  for (const [at, field] of (blueprint.instanceReference?.fields ?? []).entries()) {
    const names = field.replace(/^#/, '').split('/').slice(1);
    for (const action of startingActions(context)) {
      const unseeing = [...participantIds].find((id) => !sees(id, action, names));
      if (unseeing === undefined) continue;
      const message = `Action ${action.id} does not disclose this field to ${unseeing}; every participant sees the reference`;
      yield errorAt(`/instanceReference/fields/${at}`, 'VAL_BP_024', message);
      break;
    }
  }
}

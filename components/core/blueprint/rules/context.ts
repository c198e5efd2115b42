import type { JsonObject } from '../../encoding/json.ts';
import { jsonPointer } from '../members.ts';
import type { Action, Blueprint } from '../model/blueprint.ts';
import type { Finding } from '../model/finding.ts';
import { isCovered } from '../model/pointers.ts';
import { propertyNames } from '../schemas/properties.ts';

/** A definition, in a form that rules can ask; its schemas are flattened. */
export interface RuleContext {
  readonly blueprint: Blueprint;
  readonly participantIds: ReadonlySet<string>;
  readonly openIds: ReadonlySet<string>;
  /** The first action of each id. */
  readonly actions: ReadonlyMap<number, Action>;
  /** Ids of the actions that lead to an action, over routes and rejections. */
  readonly predecessors: ReadonlyMap<number, ReadonlySet<number>>;
  /** Whether a credential service is configured. */
  readonly credentials: boolean;
}

/** Judges one aspect of a definition. */
export type Rule = (context: RuleContext) => Iterable<Finding>;

/** Puts a definition, its schemas flattened, into the form that rules take. */
export function createContext(blueprint: Blueprint, credentials: boolean): RuleContext {
  const { participants, actions } = blueprint;
  return {
    blueprint,
    participantIds: new Set(participants.map(({ id }) => id)),
    openIds: new Set(
      participants.filter(({ walletAddress }) => walletAddress === undefined).map(({ id }) => id),
    ),
    actions: firstOfEachId(actions),
    predecessors: predecessorsOf(actions),
    credentials,
  };
}

function firstOfEachId(actions: readonly Action[]): ReadonlyMap<number, Action> {
  const found = new Map<number, Action>();
  for (const action of actions) if (!found.has(action.id)) found.set(action.id, action);
  return found;
}

function predecessorsOf(actions: readonly Action[]): RuleContext['predecessors'] {
  const found = new Map<number, Set<number>>();
  for (const [index, action] of actions.entries()) {
    for (const target of edgesOf(action, index).flatMap(({ targets }) => targets)) {
      found.set(target, (found.get(target) ?? new Set()).add(action.id));
    }
  }
  return found;
}

/** A location inside an action. */
export function inAction(index: number, ...path: readonly (string | number)[]): string {
  return jsonPointer(['actions', index, ...path]);
}

/** An edge of the workflow: the ids that it leads to, and where it stands in the definition. */
export interface Edge {
  readonly targets: readonly number[];
  readonly isRejection: boolean;
  /** Position of the action that it leaves. */
  readonly from: number;
  /** Where each target is named. */
  readonly locate: (target: number) => string;
}

/** Routes and the rejection of an action, as edges; a terminal rejection is none. */
export function edgesOf(action: Action, index: number): Edge[] {
  const routes = (action.routes ?? []).map(({ nextActionIds }, route) => ({
    targets: nextActionIds,
    isRejection: false,
    from: index,
    locate: (target: number) =>
      inAction(index, 'routes', route, 'nextActionIds', Math.max(nextActionIds.indexOf(target), 0)),
  }));
  const { rejectionConfig } = action;
  if (rejectionConfig?.targetActionId === undefined || rejectionConfig.isTerminal === true) return routes;
  const locate = () => inAction(index, 'rejectionConfig');
  return [...routes, { targets: [rejectionConfig.targetActionId], isRejection: true, from: index, locate }];
}

/** Ids of the actions that some actions lead to, over routes and rejections, themselves among them. */
export function reachableActions(
  { actions, blueprint }: RuleContext,
  starts: readonly number[],
  isPassed: (action: Action) => boolean = () => true,
): ReadonlySet<number> {
  const found = new Set<number>();
  const open = [...starts];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const action = actions.get(id);
    if (action === undefined || found.has(id)) continue;
    found.add(id);
    if (!isPassed(action)) continue;
    open.push(...edgesOf(action, blueprint.actions.indexOf(action)).flatMap(({ targets }) => targets));
  }
  return found;
}

/** The actions that an instance can begin with. */
export function startingActions({ blueprint }: RuleContext): readonly Action[] {
  return blueprint.actions.filter(({ isStartingAction }) => isStartingAction === true);
}

/** Whether a participant sees the value at a place in the data of an action. */
export function sees(participantId: string, action: Action, names: readonly string[]): boolean {
  if (action.sender === participantId) return true;
  return action.disclosures.some(
    ({ participantAddress, dataPointers }) =>
      participantAddress === participantId && dataPointers.some((pointer) => isCovered(names, pointer)),
  );
}

/** Names of the members of an action's data: declared properties and calculations. */
export function dataNames({ dataSchemas = [], calculations = {} }: Action): ReadonlySet<string> {
  return new Set([...propertyNames(dataSchemas), ...Object.keys(calculations)]);
}

/** The member of an object with that very name. */
export function own(value: JsonObject, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

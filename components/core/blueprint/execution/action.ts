import type { JsonObject } from '../../encoding/json.ts';
import { AppError } from '../../errors/errors.ts';
import { isTruthy } from '../logic/values.ts';
import type { Action, Route } from '../model/blueprint.ts';
import type { PayloadError } from '../schemas/compile.ts';
import { calculate, type LogicEvaluation } from './calculations.ts';

/** Data of earlier actions that the sender can read. */
interface InstanceData {
  /** Data of each action by its id, in decimal. */
  readonly actions: JsonObject;
  /** All of it, a later action's members over those of earlier ones. */
  readonly merged: JsonObject;
}

interface ActionInput {
  readonly action: Pick<Action, 'id' | 'calculations' | 'routes'>;
  /** Matches a payload with the data schemas of the action. */
  readonly validate: (payload: JsonObject) => readonly PayloadError[];
  readonly logic: LogicEvaluation;
  /** Data that output mappings of earlier actions wrote for this one. */
  readonly prefill: JsonObject;
  readonly submission: JsonObject;
  readonly state: InstanceData;
}

/** The route that an action takes; its condition is null when it is the default. */
interface RouteTaken {
  readonly route: Route;
  /** JSON Logic of the condition as compact JSON. */
  readonly matchedCondition: string | null;
}

/** What an action makes of a payload that matches its schemas. */
interface EvaluatedAction {
  readonly calculations: JsonObject;
  /** The payload and the calculations. */
  readonly processed: JsonObject;
  /** Absent for an action without routes, which ends its branch. */
  readonly taken: RouteTaken | undefined;
}

/** Outcome of an evaluation: the errors of a payload, or what follows from it. */
export type ActionOutcome = { readonly payload: JsonObject } & (
  | { readonly errors: readonly PayloadError[] }
  | ({ readonly errors: readonly [] } & EvaluatedAction)
);

/**
 * Evaluates an action (specification document 3, section 4): the submission over the prefill, schemas, calculations,
 * routes in their order. Logic sees the data of earlier actions, the payload over it, and each earlier action by its id
 * under `actions`.
 *
 * @throws AppError unprocessable CALC_CYCLE, CALC_NOT_FINITE, NO_ROUTE, and what `logic` throws
 */
export function evaluateAction(input: ActionInput): ActionOutcome {
  const { action, logic, state } = input;
  const payload = { ...input.prefill, ...input.submission };
  const errors = input.validate(payload);
  if (errors.length > 0) return { payload, errors };
  const scope = { ...state.merged, ...payload, actions: state.actions };
  const calculations = calculate(action.calculations ?? {}, scope, logic);
  const taken = findRoute(action, { ...scope, ...calculations, actions: state.actions }, logic);
  return { payload, errors: [], calculations, processed: { ...payload, ...calculations }, taken };
}

/** The first route whose condition holds, else the default. */
function findRoute(
  { id, routes = [] }: Pick<Action, 'id' | 'routes'>,
  scope: JsonObject,
  logic: LogicEvaluation,
): RouteTaken | undefined {
  if (routes.length === 0) return undefined;
  const matched = routes.find(
    ({ condition }) => condition !== undefined && isTruthy(logic.evaluate(condition, scope)),
  );
  if (matched !== undefined) return { route: matched, matchedCondition: JSON.stringify(matched.condition) };
  const fallback = routes.find(({ isDefault }) => isDefault === true);
  if (fallback !== undefined) return { route: fallback, matchedCondition: null };
  throw new AppError(
    'unprocessable',
    'NO_ROUTE',
    `No route of action ${id} matches, and none is the default`,
  );
}

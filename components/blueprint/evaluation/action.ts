import { evaluateAction } from '#core/blueprint/execution/action.ts';
import { disclose } from '#core/blueprint/execution/disclose.ts';
import type { Action, Blueprint } from '#core/blueprint/model/blueprint.ts';
import { parseBlueprint } from '#core/blueprint/model/parse.ts';
import { compileSchemas, type JudgePayload, type PayloadError } from '#core/blueprint/schemas/compile.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { AppError } from '#core/errors/errors.ts';
import { CompiledLogic } from './logic.ts';

/** A definition that can be evaluated. Schemas are compiled when an action is first used. */
export interface CompiledDefinition {
  readonly blueprint: Blueprint;
  readonly logic: CompiledLogic;
  readonly schemas: Map<number, JudgePayload>;
}

/** Prepares a definition; undefined for one that is none, which others than this service may have published. */
export function compileDefinition(definition: JsonObject): CompiledDefinition | undefined {
  const parsed = parseBlueprint(definition);
  if ('findings' in parsed) return undefined;
  const refuse = (fault: string) => new AppError('unprocessable', 'LOGIC_REFUSED', fault);
  return { blueprint: parsed.blueprint, logic: new CompiledLogic(refuse), schemas: new Map() };
}

/** The action of an id. */
export function findAction({ blueprint }: CompiledDefinition, actionId: number): Action | undefined {
  return blueprint.actions.find(({ id }) => id === actionId);
}

/** How a payload violates the data schemas of an action. Throws AppError unprocessable SCHEMA_REFUSED. */
export function validatePayload(
  { schemas }: CompiledDefinition,
  action: Action,
  payload: unknown,
): readonly PayloadError[] {
  const judge = schemas.get(action.id) ?? compileSchemas(action);
  schemas.set(action.id, judge);
  return judge(payload);
}

/** An action that a route leads to. */
interface NextAction {
  readonly actionId: number;
  readonly participantId: string;
  /** Of a route to several actions. */
  readonly branchKey?: string;
}

/** What an action starts from: data of earlier actions, and what the step before wrote for it. */
export type EarlierData = Pick<Parameters<typeof evaluateAction>[0], 'prefill' | 'state'>;

export const nothingEarlier: EarlierData = { prefill: {}, state: { actions: {}, merged: {} } };

/** What data makes of an action. */
export interface TriedAction {
  readonly calculations: JsonObject;
  readonly processed: JsonObject;
  readonly routeId: string | undefined;
  /** JSON Logic as compact JSON; null for the default route and for an action without routes. */
  readonly matchedCondition: string | null;
  readonly nextActions: readonly NextAction[];
  readonly disclosures: readonly {
    readonly participantId: string;
    readonly data: JsonObject;
    readonly fieldCount: number;
  }[];
}

/**
 * Evaluates an action over data, which its schemas need not admit, and what is there before it.
 * @throws AppError unprocessable CALC_CYCLE, CALC_NOT_FINITE, NO_ROUTE, LOGIC_BUDGET_EXCEEDED, LOGIC_REFUSED,
 * LOGIC_NO_TEXT
 */
export function tryAction(
  compiled: CompiledDefinition,
  action: Action,
  data: JsonObject,
  earlier: EarlierData,
): TriedAction {
  const outcome = evaluateAction({
    action,
    validate: () => [],
    logic: compiled.logic.begin(),
    submission: data,
    ...earlier,
  });
  if (!('processed' in outcome)) throw new RangeError('data that is not validated has no errors');
  const { calculations, processed, taken } = outcome;
  const next = taken?.route.nextActionIds ?? [];
  return {
    calculations,
    processed,
    routeId: taken?.route.id,
    matchedCondition: taken?.matchedCondition ?? null,
    nextActions: next.map((actionId, index) => ({
      actionId,
      participantId: findAction(compiled, actionId)?.sender ?? '',
      ...(next.length > 1 && { branchKey: `${action.id}.${taken?.route.id ?? ''}.${index}` }),
    })),
    disclosures: disclose(action, processed).map(({ participantId, data: shown, fieldCount }) => ({
      participantId,
      data: shown,
      fieldCount,
    })),
  };
}

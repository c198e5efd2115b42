import { canonicalJson } from '../../encoding/jcs.ts';
import type { JsonObject } from '../../encoding/json.ts';
import { compareCodeUnits } from '../../encoding/text.ts';
import { AppError, isAppError } from '../../errors/errors.ts';

/** JSON Logic for the evaluation of one action: all of its pieces share one budget. */
export interface LogicEvaluation {
  /** Names of the data that a piece reads, with dots between the names of nested members. */
  variablesOf(logic: unknown): readonly string[];
  evaluate(logic: unknown, data: JsonObject): unknown;
}

/**
 * The values of calculations, each of which sees those that it reads. They are evaluated in the order of their
 * dependencies, then of their names: a sealed definition is canonical JSON, which keeps no order of members, so drafts
 * and publications must not depend on one.
 *
 * @throws AppError unprocessable CALC_CYCLE, CALC_NOT_FINITE
 */
export function calculate(calculations: JsonObject, scope: JsonObject, logic: LogicEvaluation): JsonObject {
  const actions = scope['actions'];
  let values: JsonObject = {};
  for (const name of orderOf(calculations, logic)) {
    const value = logic.evaluate(calculations[name], { ...scope, ...values, actions }) ?? null;
    assertJson(name, value);
    values = { ...values, [name]: value };
  }
  return values;
}

function orderOf(calculations: JsonObject, logic: LogicEvaluation): readonly string[] {
  const names = Object.keys(calculations).sort(compareCodeUnits);
  const sources = new Map(names.map((name) => [name, sourcesOf(calculations[name], names, logic)]));
  const ordered = new Set<string>();
  while (ordered.size < names.length) {
    const next = names.find(
      (name) => !ordered.has(name) && (sources.get(name) ?? []).every((source) => ordered.has(source)),
    );
    if (next === undefined) throw cycle(names.filter((name) => !ordered.has(name)));
    ordered.add(next);
  }
  return [...ordered];
}

function sourcesOf(calculation: unknown, names: readonly string[], logic: LogicEvaluation): string[] {
  const read = new Set(logic.variablesOf(calculation).map((variable) => variable.split('.', 1)[0]));
  return names.filter((name) => read.has(name));
}

function cycle(names: readonly string[]): AppError {
  const message = `The calculations ${names.join(', ')} read each other`;
  return new AppError('unprocessable', 'CALC_CYCLE', message);
}

/** Results become part of the data, which is JSON. */
function assertJson(name: string, value: unknown): void {
  try {
    canonicalJson(value);
  } catch (cause) {
    if (!isAppError(cause, 'invalid')) throw cause;
    const message = `The calculation ${name} has no finite result`;
    throw new AppError('unprocessable', 'CALC_NOT_FINITE', message, { cause });
  }
}

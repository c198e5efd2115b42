import type { LogicEvaluation } from '#core/blueprint/execution/calculations.ts';
import { LogicBudget } from '#core/blueprint/logic/budget.ts';
import { compileLogic, type Logic } from '#core/blueprint/logic/compile.ts';
import { evaluateLogic } from '#core/blueprint/logic/evaluate.ts';
import { variablesOf } from '#core/blueprint/logic/variables.ts';
import { isJsonObject } from '#core/encoding/json.ts';
import type { AppError } from '#core/errors/errors.ts';

/** The error for logic that has a fault, which publishing refuses. */
type RefuseLogic = (fault: string) => AppError;

/** Compiled logic of a definition, by the JSON that it is written as. */
export class CompiledLogic {
  readonly #compiled = new WeakMap<object, Logic>();
  readonly #refuse: RefuseLogic;

  constructor(refuse: RefuseLogic) {
    this.#refuse = refuse;
  }

  /** The logic of one evaluation of an action, whose pieces share one budget. Throws what it was made to refuse with. */
  begin(): LogicEvaluation {
    const budget = new LogicBudget();
    return {
      variablesOf: (logic) => variablesOf(this.#compile(logic)),
      evaluate: (logic, data) => budget.keep(evaluateLogic(this.#compile(logic), data, budget)),
    };
  }

  #compile(value: unknown): Logic {
    const key = Array.isArray(value) || isJsonObject(value) ? value : undefined;
    const known = key && this.#compiled.get(key);
    if (known !== undefined) return known;
    const compiled = compileLogic(value);
    if (compiled.kind === 'fault') throw this.#refuse(compiled.message);
    if (key !== undefined) this.#compiled.set(key, compiled);
    return compiled;
  }
}

import { AppError } from '../../errors/errors.ts';
import type { LogicBudget } from './budget.ts';
import type { Logic } from './compile.ts';
import { evaluateLogic } from './evaluate.ts';

function hasFiniteNumbers(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(hasFiniteNumbers);
}

/**
 * The result of a calculation, which becomes data: evaluateLogic, and no number in it is NaN or infinite.
 * @param data like for evaluateLogic: a result becomes a member of a new object, never of this one
 * @throws AppError unprocessable CALC_NOT_FINITE, and like evaluateLogic
 */
export function evaluateCalculation(
  { name, logic }: { readonly name: string; readonly logic: Logic },
  data: unknown,
  budget: LogicBudget,
): unknown {
  const result = budget.keep(evaluateLogic(logic, data, budget));
  if (hasFiniteNumbers(result)) return result;
  const message = `Calculation ${name} has a result that is no finite number; check what it divides by and adds up`;
  throw new AppError('unprocessable', 'CALC_NOT_FINITE', message);
}

import { isJsonObject } from '../../encoding/json.ts';
import { AppError } from '../../errors/errors.ts';
import type { LogicBudget } from './budget.ts';

/** Whether a value counts as true: all but null, false, 0, NaN, the empty text and the empty list. */
export function isTruthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && Boolean(value);
}

/** The number that a value stands for, as ECMAScript converts it; NaN for lists and objects. */
export function toNumber(value: unknown, budget: LogicBudget): number {
  if (typeof value === 'string') budget.spendCharacters(value.length);
  return typeof value === 'object' && value !== null ? Number.NaN : Number(value);
}

/** The text of a value: nothing for null, items of a list with commas between them; objects have none. */
export function toText(value: unknown, budget: LogicBudget): string {
  if (Array.isArray(value)) {
    budget.spend(value.length);
    return value.map((item) => toText(item, budget)).join(',');
  }
  if (isJsonObject(value)) {
    const message = 'The logic joins an object to a text; name one of its members';
    throw new AppError('unprocessable', 'LOGIC_NO_TEXT', message);
  }
  const text = value === null ? '' : String(value);
  budget.spendCharacters(text.length);
  return text;
}

/** Whether two values are the same text, number, boolean or null. Lists and objects equal nothing. */
export function isSame(left: unknown, right: unknown, budget: LogicBudget): boolean {
  if (typeof left === 'object' && left !== null) return false;
  if (typeof left === 'string' && typeof right === 'string' && left.length === right.length) {
    budget.spendCharacters(left.length);
  }
  return left === right;
}

/** Like isSame, but values of different kinds are compared as numbers; null equals null alone. */
export function isLooselySame(left: unknown, right: unknown, budget: LogicBudget): boolean {
  if (left === null || right === null || typeof left === typeof right) return isSame(left, right, budget);
  return toNumber(left, budget) === toNumber(right, budget);
}

/** Whether two values are in an order: two texts by UTF-16 code units, anything else as numbers. */
export function isInOrder(
  left: unknown,
  right: unknown,
  budget: LogicBudget,
  isBefore: (left: string | number, right: string | number) => boolean,
): boolean {
  if (typeof left === 'string' && typeof right === 'string') {
    budget.spendCharacters(Math.min(left.length, right.length));
    return isBefore(left, right);
  }
  return isBefore(toNumber(left, budget), toNumber(right, budget));
}

const POSITION = /^(?:0|[1-9][0-9]{0,8})$/;

function member(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return POSITION.test(name) ? value[Number(name)] : undefined;
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/**
 * The value at a name: members separated by dots, positions in lists as numbers. Only what JSON data contain is found;
 * the prototypes of objects are not.
 * @param name null or an empty text for the data as a whole
 * @returns undefined when there is no such value
 */
export function lookUp(data: unknown, name: unknown, budget: LogicBudget): unknown {
  if (name === null || name === '' || name === undefined) return data;
  if (typeof name !== 'string' && typeof name !== 'number') return undefined;
  const names = String(name).split('.');
  budget.spend(names.length);
  return names.reduce<unknown>(member, data);
}

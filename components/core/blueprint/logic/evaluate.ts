import type { LogicBudget } from './budget.ts';
import type { Logic, Operator } from './compile.ts';
import { isInOrder, isLooselySame, isSame, isTruthy, lookUp, toNumber, toText } from './values.ts';

type Operands = readonly Logic[];

/** Evaluates one operator; it decides itself which operands it evaluates, and with which data. */
type Evaluate = (operands: Operands, data: unknown, budget: LogicBudget) => unknown;

function run(logic: Logic | undefined, data: unknown, budget: LogicBudget): unknown {
  if (logic === undefined) return null;
  budget.spend(1);
  switch (logic.kind) {
    case 'constant':
      return logic.value;
    case 'list':
      return budget.admit(runAll(logic.items, data, budget));
    case 'operation':
      return OPERATIONS[logic.operator](logic.operands, data, budget);
  }
}

function runAll(operands: Operands, data: unknown, budget: LogicBudget): unknown[] {
  return operands.map((operand) => run(operand, data, budget));
}

const choose: Evaluate = (operands, data, budget) => {
  let index = 0;
  for (; index + 1 < operands.length; index += 2) {
    if (isTruthy(run(operands[index], data, budget))) return run(operands[index + 1], data, budget);
  }
  return run(operands[index], data, budget);
};

/** The first operand that decides, or else the last one. */
function firstThat(decides: (value: unknown) => boolean): Evaluate {
  return (operands, data, budget) => {
    let value: unknown = null;
    for (const operand of operands) {
      value = run(operand, data, budget);
      if (decides(value)) break;
    }
    return value;
  };
}

/** An operator that looks at one truth. */
function truth(judge: (isTrue: boolean) => boolean): Evaluate {
  return ([operand], data, budget) => judge(isTruthy(run(operand, data, budget)));
}

function equality(judge: (left: unknown, right: unknown, budget: LogicBudget) => boolean): Evaluate {
  return ([left, right], data, budget) => judge(run(left, data, budget), run(right, data, budget), budget);
}

function order(isBefore: (left: string | number, right: string | number) => boolean): Evaluate {
  return (operands, data, budget) => {
    const values = runAll(operands, data, budget);
    return values.every(
      (value, index) => index === 0 || isInOrder(values[index - 1], value, budget, isBefore),
    );
  };
}

function arithmetic(calculate: (numbers: readonly number[]) => number): Evaluate {
  return (operands, data, budget) =>
    calculate(runAll(operands, data, budget).map((value) => toNumber(value, budget)));
}

function difference([left = Number.NaN, right]: readonly number[]): number {
  return right === undefined ? -left : left - right;
}

/** The list that an operator iterates; anything else is an empty one. */
function listAt(logic: Logic | undefined, data: unknown, budget: LogicBudget): readonly unknown[] {
  const list = run(logic, data, budget);
  return Array.isArray(list) ? list : [];
}

const transform: Evaluate = ([list, body], data, budget) =>
  budget.admit(listAt(list, data, budget).map((item) => run(body, item, budget)));

const select: Evaluate = ([list, body], data, budget) =>
  budget.admit(listAt(list, data, budget).filter((item) => isTruthy(run(body, item, budget))));

const fold: Evaluate = ([list, body, start], data, budget) => {
  const items = listAt(list, data, budget);
  let accumulator = run(start, data, budget);
  for (const current of items) {
    accumulator = run(body, budget.admit({ current, accumulator }), budget);
  }
  return accumulator;
};

/** Whether items of a list are true; a list without items has the given answer. */
function quantify(
  judge: (items: readonly unknown[], isTrue: (item: unknown) => boolean) => boolean,
): Evaluate {
  return ([list, body], data, budget) =>
    judge(listAt(list, data, budget), (item) => isTruthy(run(body, item, budget)));
}

const find: Evaluate = ([name, otherwise], data, budget) => {
  const found = lookUp(data, run(name, data, budget), budget);
  return found === undefined ? run(otherwise, data, budget) : found;
};

function namesMissing(names: readonly unknown[], data: unknown, budget: LogicBudget): unknown[] {
  budget.spend(names.length);
  const missing = names.filter((name) => {
    const value = lookUp(data, name, budget);
    return value === undefined || value === null || value === '';
  });
  return budget.admit(missing);
}

const missing: Evaluate = (operands, data, budget) => {
  const values = runAll(operands, data, budget);
  const [first] = values;
  return namesMissing(Array.isArray(first) ? first : values, data, budget);
};

const missingSome: Evaluate = ([needed, names], data, budget) => {
  const count = toNumber(run(needed, data, budget), budget);
  const all = listAt(names, data, budget);
  const absent = namesMissing(all, data, budget);
  return all.length - absent.length >= count ? [] : absent;
};

const merge: Evaluate = (operands, data, budget) => {
  const values = runAll(operands, data, budget);
  for (const value of values) budget.spend(Array.isArray(value) ? value.length : 1);
  return budget.admit(values.flat(1));
};

/** Characters of text and searched text, multiplied, that a search handles in the time of one step. */
const COMPARISONS_A_STEP = 4096;

const contains: Evaluate = ([wanted, container], data, budget) => {
  const part = run(wanted, data, budget);
  const whole = run(container, data, budget);
  if (Array.isArray(whole)) {
    budget.spend(whole.length);
    return whole.some((item) => isSame(item, part, budget));
  }
  // An empty text contains nothing, not even itself: the implementations agree on that.
  if (typeof whole !== 'string' || typeof part !== 'string' || whole === '') return false;
  budget.spend(Math.ceil((whole.length * Math.max(part.length, 1)) / COMPARISONS_A_STEP));
  return whole.includes(part);
};

const join: Evaluate = (operands, data, budget) => {
  const texts = operands.map((operand) => toText(run(operand, data, budget), budget));
  return budget.admit(texts.join(''));
};

/** A part of a text by its characters (code points), so that none is cut in two. */
const cut: Evaluate = ([source, from, length], data, budget) => {
  const characters = [...toText(run(source, data, budget), budget)];
  const position = (logic: Logic | undefined): number =>
    Math.trunc(toNumber(run(logic, data, budget), budget)) || 0;
  const start = position(from);
  const rest = characters.slice(start);
  if (length === undefined) return rest.join('');
  const count = position(length);
  // A negative length counts from the end; slice does that, too.
  return rest.slice(0, count).join('');
};

const OPERATIONS: Readonly<Record<Operator, Evaluate>> = {
  var: find,
  missing,
  missing_some: missingSome,
  if: choose,
  '?:': choose,
  '==': equality(isLooselySame),
  '===': equality(isSame),
  '!=': equality((left, right, budget) => !isLooselySame(left, right, budget)),
  '!==': equality((left, right, budget) => !isSame(left, right, budget)),
  '!': truth((isTrue) => !isTrue),
  '!!': truth((isTrue) => isTrue),
  or: firstThat(isTruthy),
  and: firstThat((value) => !isTruthy(value)),
  '>': order((left, right) => left > right),
  '>=': order((left, right) => left >= right),
  '<': order((left, right) => left < right),
  '<=': order((left, right) => left <= right),
  max: arithmetic((numbers) => Math.max(...numbers)),
  min: arithmetic((numbers) => Math.min(...numbers)),
  '+': arithmetic((numbers) => numbers.reduce((sum, number) => sum + number, 0)),
  '-': arithmetic(difference),
  '*': arithmetic((numbers) => numbers.reduce((product, number) => product * number, 1)),
  '/': arithmetic(([left = Number.NaN, right = Number.NaN]) => left / right),
  '%': arithmetic(([left = Number.NaN, right = Number.NaN]) => left % right),
  map: transform,
  reduce: fold,
  filter: select,
  all: quantify((items, isTrue) => items.length > 0 && items.every(isTrue)),
  none: quantify((items, isTrue) => !items.some(isTrue)),
  some: quantify((items, isTrue) => items.some(isTrue)),
  merge,
  in: contains,
  cat: join,
  substr: cut,
};

/**
 * Evaluates JSON Logic over data. Numbers are IEEE 754 doubles, so a result may be NaN or infinite; null, false, 0, NaN,
 * the empty text and the empty list are not true. The same logic and data give the same result for good: a change of
 * meaning is a new version in the routing of a step.
 * @param data JSON data, which must not change while the budget is used; results share its values
 * @throws AppError unprocessable LOGIC_BUDGET_EXCEEDED when the budget does not suffice, LOGIC_NO_TEXT when an object is
 * joined to a text
 */
export function evaluateLogic(logic: Logic, data: unknown, budget: LogicBudget): unknown {
  return run(logic, data, budget);
}

import type { Logic, Operation } from './compile.ts';

/** Stands for the data as a whole. */
export const ALL_DATA = '';

/** Operators that evaluate their second operand with the items of the first as data. */
const ITERATIONS: ReadonlySet<string> = new Set(['map', 'reduce', 'filter', 'all', 'none', 'some']);

function nameOf(logic: Logic | undefined): string {
  if (logic?.kind !== 'constant') return ALL_DATA;
  const { value } = logic;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ALL_DATA;
}

function* below(logics: readonly (Logic | undefined)[]): Generator<string> {
  for (const logic of logics) if (logic !== undefined) yield* walk(logic);
}

function* namesIn(names: readonly (Logic | undefined)[]): Generator<string> {
  for (const name of names) {
    if (name?.kind === 'list') yield* namesIn(name.items);
    else yield nameOf(name);
  }
}

function* operation({ operator, operands }: Operation): Generator<string> {
  const [first, second, third] = operands;
  if (operator === 'var') {
    yield nameOf(first);
    yield* below(operands);
  } else if (operator === 'missing' || operator === 'missing_some') {
    yield* namesIn(operator === 'missing' ? operands : [second]);
    yield* below(operands);
  } else {
    yield* below(ITERATIONS.has(operator) ? [first, third] : operands);
  }
}

function* walk(logic: Logic): Generator<string> {
  if (logic.kind === 'list') yield* below(logic.items);
  if (logic.kind === 'operation') yield* operation(logic);
}

/**
 * Names of the data that logic reads, in order, each once: members with dots between them; empty for the data as a
 * whole, also where the name itself is calculated. What iterations read of an item is not listed: they read the list.
 */
export function variablesOf(logic: Logic): string[] {
  return [...new Set(walk(logic))];
}

interface LooseComparison {
  readonly variable: string;
  readonly literal: unknown;
}

function* equalities(logic: Logic): Generator<LooseComparison> {
  if (logic.kind === 'constant') return;
  const inside = logic.kind === 'list' ? logic.items : logic.operands;
  if (logic.kind === 'operation' && (logic.operator === '==' || logic.operator === '!=')) {
    for (const [one, other] of [inside, inside.toReversed()]) {
      if (one?.kind !== 'operation' || one.operator !== 'var' || other?.kind !== 'constant') continue;
      yield { variable: nameOf(one.operands[0]), literal: other.value };
    }
  }
  const isIteration = logic.kind === 'operation' && ITERATIONS.has(logic.operator);
  for (const inner of isIteration ? inside.slice(0, 1) : inside) yield* equalities(inner);
}

/** Variables that are compared with literals by == and !=. */
export function looseComparisons(logic: Logic): LooseComparison[] {
  return [...equalities(logic)];
}

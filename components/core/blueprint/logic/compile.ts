import { isJsonObject } from '../../encoding/json.ts';
import { jsonPointer } from '../members.ts';

/** Bounds of one piece of logic: values inside values, and values altogether. */
export const LOGIC_LIMITS = { depth: 32, nodes: 500 } as const;

const ANY = Number.POSITIVE_INFINITY;

/** Least and most operands of each operator. */
const OPERATORS = {
  var: [0, 2],
  missing: [0, ANY],
  missing_some: [2, 2],
  if: [0, ANY],
  '?:': [0, ANY],
  '==': [2, 2],
  '===': [2, 2],
  '!=': [2, 2],
  '!==': [2, 2],
  '!': [1, 1],
  '!!': [1, 1],
  or: [1, ANY],
  and: [1, ANY],
  '>': [2, 3],
  '>=': [2, 3],
  '<': [2, 3],
  '<=': [2, 3],
  max: [1, ANY],
  min: [1, ANY],
  '+': [1, ANY],
  '-': [1, 2],
  '*': [1, ANY],
  '/': [2, 2],
  '%': [2, 2],
  map: [2, 2],
  reduce: [2, 3],
  filter: [2, 2],
  all: [2, 2],
  none: [2, 2],
  some: [2, 2],
  merge: [0, ANY],
  in: [2, 2],
  cat: [1, ANY],
  substr: [2, 3],
} as const satisfies Readonly<Record<string, readonly [number, number]>>;

export type Operator = keyof typeof OPERATORS;

interface Constant {
  readonly kind: 'constant';
  readonly value: unknown;
}

interface List {
  readonly kind: 'list';
  readonly items: readonly Logic[];
}

export interface Operation {
  readonly kind: 'operation';
  readonly operator: Operator;
  readonly operands: readonly Logic[];
}

/** JSON Logic that was checked: allowed operators, their numbers of operands, and the limits. */
export type Logic = Constant | List | Operation;

interface LogicFault {
  readonly kind: 'fault';
  readonly message: string;
  /** JSON Pointer into the logic. */
  readonly location: string;
}

type Path = readonly (string | number)[];

interface Compilation {
  nodes: number;
  fault: LogicFault | undefined;
}

const NOTHING: Constant = { kind: 'constant', value: null };

function isOperator(name: string): name is Operator {
  return Object.hasOwn(OPERATORS, name);
}

function refuse(compilation: Compilation, path: Path, message: string): Logic {
  compilation.fault ??= { kind: 'fault', message, location: jsonPointer(path) };
  return NOTHING;
}

function compileAll(
  compilation: Compilation,
  values: readonly unknown[],
  path: Path,
  depth: number,
): Logic[] {
  const compiled: Logic[] = [];
  for (let index = 0; index < values.length && compilation.fault === undefined; index += 1) {
    compiled.push(compile(compilation, values[index], [...path, index], depth + 1));
  }
  return compiled;
}

function compileOperation(
  compilation: Compilation,
  value: Readonly<Record<string, unknown>>,
  path: Path,
  depth: number,
): Logic {
  const names = Object.keys(value);
  const [operator = ''] = names;
  if (names.length !== 1)
    return refuse(compilation, path, 'An operation has exactly one member: its operator');
  if (!isOperator(operator)) {
    return refuse(compilation, path, `Operator ${JSON.stringify(operator.slice(0, 40))} is not allowed`);
  }
  const given = value[operator];
  const inside = [...path, operator];
  const operands = Array.isArray(given)
    ? compileAll(compilation, given, inside, depth)
    : [compile(compilation, given, inside, depth + 1)];
  const [least, most] = OPERATORS[operator];
  const count = Array.isArray(given) ? given.length : 1;
  if (count >= least && count <= most) return { kind: 'operation', operator, operands };
  const wanted = least === most ? `${least}` : `${least} to ${most}`;
  const expected = most === ANY ? `at least ${least}` : wanted;
  return refuse(compilation, path, `Operator ${operator} takes ${expected} operands; there are ${count}`);
}

function compile(compilation: Compilation, value: unknown, path: Path, depth: number): Logic {
  compilation.nodes += 1;
  if (compilation.nodes > LOGIC_LIMITS.nodes) {
    return refuse(compilation, path, `The logic has more than ${LOGIC_LIMITS.nodes} values`);
  }
  if (depth > LOGIC_LIMITS.depth) {
    return refuse(compilation, path, `The logic is nested deeper than ${LOGIC_LIMITS.depth}`);
  }
  if (Array.isArray(value)) return { kind: 'list', items: compileAll(compilation, value, path, depth) };
  if (isJsonObject(value)) return compileOperation(compilation, value, path, depth);
  if (value === undefined) return refuse(compilation, path, 'There is no logic');
  return { kind: 'constant', value };
}

/** Checks JSON Logic and brings it into the form that evaluateLogic takes, or says what is wrong with it, and where. */
export function compileLogic(value: unknown): Logic | LogicFault {
  const compilation: Compilation = { nodes: 0, fault: undefined };
  const logic = compile(compilation, value, [], 1);
  return compilation.fault ?? logic;
}

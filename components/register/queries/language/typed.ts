import { type EdmType, type EntitySet, findProperty, type Property } from './model.ts';
import {
  type Comparison,
  type Expression,
  type LiteralNode,
  malformedQuery,
  type QueryOption,
  unsupportedQuery,
} from './syntax.ts';
import { instantText } from './tokens.ts';

export type ValueType = 'string' | 'number' | 'boolean' | 'instant' | 'date';

export interface TypedLiteral {
  readonly kind: 'literal';
  readonly type: ValueType;
  /** Text of a number, an instant or a date. */
  readonly value: string | boolean;
}

/** An expression whose names and types fit the entity set. */
export type Typed =
  | TypedLiteral
  | { readonly kind: 'property'; readonly type: ValueType; readonly property: Property }
  | {
      readonly kind: 'call';
      readonly type: ValueType;
      readonly name: CallName;
      readonly args: readonly Typed[];
    }
  | {
      readonly kind: 'compare';
      readonly type: 'boolean';
      readonly operator: Comparison;
      readonly left: Typed;
      readonly right: Typed;
    }
  | { readonly kind: 'isNull'; readonly type: 'boolean'; readonly of: Typed; readonly negated: boolean }
  | {
      readonly kind: 'in';
      readonly type: 'boolean';
      readonly item: Typed;
      readonly values: readonly TypedLiteral[];
      readonly orNull: boolean;
    }
  | { readonly kind: 'not'; readonly type: 'boolean'; readonly of: Typed }
  | { readonly kind: 'all' | 'any'; readonly type: 'boolean'; readonly of: readonly Typed[] };

interface Signature {
  readonly takes: readonly ValueType[];
  readonly gives: ValueType;
}

const onText: Signature = { takes: ['string'], gives: 'string' };
const ofTwoTexts: Signature = { takes: ['string', 'string'], gives: 'boolean' };
const ofInstant: Signature = { takes: ['instant'], gives: 'number' };

const signatures = {
  contains: ofTwoTexts,
  startswith: ofTwoTexts,
  endswith: ofTwoTexts,
  tolower: onText,
  toupper: onText,
  trim: onText,
  length: { takes: ['string'], gives: 'number' },
  year: ofInstant,
  month: ofInstant,
  day: ofInstant,
  hour: ofInstant,
  minute: ofInstant,
  second: ofInstant,
  date: { takes: ['instant'], gives: 'date' },
} as const satisfies Readonly<Record<string, Signature>>;

export type CallName = keyof typeof signatures;

const isCallName = (name: string): name is CallName => Object.hasOwn(signatures, name);

/** Functions of OData that are not supported. */
const foreignCalls: readonly string[] = [
  'concat',
  'indexof',
  'substring',
  'matchespattern',
  'fractionalseconds',
  'time',
  'totaloffsetminutes',
  'totalseconds',
  'maxdatetime',
  'mindatetime',
  'ceiling',
  'floor',
  'round',
  'cast',
  'isof',
  'case',
  'any',
  'all',
  'hassubset',
  'hassubsequence',
];

const typeOf: Readonly<Record<EdmType, ValueType>> = {
  'Edm.String': 'string',
  'Edm.Boolean': 'boolean',
  'Edm.Int64': 'number',
  'Edm.DateTimeOffset': 'instant',
};

const described: Readonly<Record<ValueType, string>> = {
  string: 'text',
  number: 'a number',
  boolean: 'true or false',
  instant: 'a point in time',
  date: 'a date',
};

export interface TypingContext {
  readonly set: EntitySet;
  readonly option: QueryOption;
  /** microseconds since the epoch: the value of `now()` */
  readonly nowMicros: bigint;
}

const nullLiteral = (node: Expression): boolean => node.kind === 'literal' && node.literal.type === 'null';

function fail(context: TypingContext, node: Expression, what: string): Error {
  return malformedQuery({ option: context.option, position: node.at }, what);
}

function typeLiteral(context: TypingContext, node: LiteralNode): TypedLiteral {
  const { literal } = node;
  switch (literal.type) {
    case 'null':
      throw fail(context, node, 'null is allowed with eq, ne and in only');
    case 'guid':
      return { kind: 'literal', type: 'string', value: literal.value };
    default:
      return { kind: 'literal', type: literal.type, value: literal.value };
  }
}

function typeProperty(context: TypingContext, node: Expression & { readonly kind: 'property' }): Typed {
  const property = findProperty(context.set, node.name);
  if (property === undefined)
    throw fail(context, node, `${context.set.name} have no property '${node.name.slice(0, 64)}'`);
  return { kind: 'property', type: typeOf[property.type], property };
}

function typeCall(context: TypingContext, node: Expression & { readonly kind: 'call' }): Typed {
  const { name, args } = node;
  if (name === 'now' && args.length === 0)
    return { kind: 'literal', type: 'instant', value: instantText(context.nowMicros) };
  if (!isCallName(name)) {
    const location = { option: context.option, position: node.at };
    throw foreignCalls.includes(name)
      ? unsupportedQuery(location, `the function ${name}`)
      : malformedQuery(location, `no function '${name.slice(0, 64)}'`);
  }
  const { takes, gives } = signatures[name];
  if (args.length !== takes.length)
    throw fail(context, node, `${name} takes ${takes.length} argument${takes.length === 1 ? '' : 's'}`);
  const typed = args.map((arg, index) => {
    const one = typeExpression(context, arg);
    const type = takes[index] ?? 'string';
    if (one.type !== type) throw fail(context, arg, `${name} takes ${described[type]} here`);
    return one;
  });
  return { kind: 'call', type: gives, name, args: typed };
}

/** Converts a literal for a comparison: a date becomes its first instant, hexadecimal text its canonical form. */
function adapt(literal: TypedLiteral, beside: Typed): TypedLiteral {
  if (literal.type === 'date' && beside.type === 'instant')
    return { kind: 'literal', type: 'instant', value: `${String(literal.value)}T00:00:00.000000Z` };
  if (beside.kind !== 'property' || !beside.property.hex || typeof literal.value !== 'string') return literal;
  const text = literal.value.toLowerCase();
  const isGuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
  return { ...literal, value: isGuid ? text.replaceAll('-', '') : text };
}

const adaptIfLiteral = (one: Typed, beside: Typed): Typed =>
  one.kind === 'literal' ? adapt(one, beside) : one;

function typeComparison(context: TypingContext, node: Expression & { readonly kind: 'compare' }): Typed {
  const { operator } = node;
  const equality = operator === 'eq' || operator === 'ne';
  const [leftNull, rightNull] = [nullLiteral(node.left), nullLiteral(node.right)];
  if (leftNull && rightNull) {
    if (!equality) throw fail(context, node, `${operator} does not compare null`);
    return { kind: 'literal', type: 'boolean', value: operator === 'eq' };
  }
  if (leftNull || rightNull) {
    if (!equality) throw fail(context, node, `${operator} does not compare null`);
    const of = typeExpression(context, leftNull ? node.right : node.left);
    return { kind: 'isNull', type: 'boolean', of, negated: operator === 'ne' };
  }
  const [first, second] = [typeExpression(context, node.left), typeExpression(context, node.right)];
  const left = adaptIfLiteral(first, second);
  const right = adaptIfLiteral(second, first);
  if (left.type !== right.type)
    throw fail(context, node, `${described[left.type]} is not compared with ${described[right.type]}`);
  if (left.type === 'boolean' && !equality)
    throw fail(context, node, `${operator} does not compare true and false`);
  return { kind: 'compare', type: 'boolean', operator, left, right };
}

function typeMembership(context: TypingContext, node: Expression & { readonly kind: 'in' }): Typed {
  const item = typeExpression(context, node.item);
  const values = node.list
    .filter((one) => !nullLiteral(one))
    .map((one) => {
      const literal = adapt(typeLiteral(context, one), item);
      if (literal.type !== item.type) throw fail(context, one, `expected ${described[item.type]}`);
      return literal;
    });
  return { kind: 'in', type: 'boolean', item, values, orNull: values.length < node.list.length };
}

function typeCondition(context: TypingContext, node: Expression): Typed {
  const typed = typeExpression(context, node);
  if (typed.type !== 'boolean') throw fail(context, node, 'expected a condition');
  return typed;
}

function typeExpression(context: TypingContext, node: Expression): Typed {
  switch (node.kind) {
    case 'literal':
      return typeLiteral(context, node);
    case 'property':
      return typeProperty(context, node);
    case 'call':
      return typeCall(context, node);
    case 'compare':
      return typeComparison(context, node);
    case 'in':
      return typeMembership(context, node);
    case 'not':
      return { kind: 'not', type: 'boolean', of: typeCondition(context, node.of) };
    case 'all':
    case 'any':
      return { kind: node.kind, type: 'boolean', of: node.of.map((one) => typeCondition(context, one)) };
  }
}

/**
 * Types a filter for an entity set: every name is a property of it, every operator accepts its operand types.
 * @throws AppError invalid QUERY_INVALID, not_implemented QUERY_NOT_SUPPORTED, both with the position
 */
export function typeFilter(context: TypingContext, expression: Expression): Typed {
  return typeCondition(context, expression);
}

/** Types an ordering. Throws as `typeFilter`. */
export function typeOrdering(context: TypingContext, expression: Expression): Typed {
  return typeExpression(context, expression);
}

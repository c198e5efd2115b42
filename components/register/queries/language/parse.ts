import {
  COMPARISONS,
  type Comparison,
  type Expression,
  type LiteralNode,
  malformedQuery,
  type Ordering,
  type QueryOption,
  queryLimits,
  unsupportedQuery,
} from './syntax.ts';
import { readTokens, type Token } from './tokens.ts';

/** Operators of OData that are not supported here. */
const foreignOperators: readonly string[] = ['add', 'sub', 'mul', 'div', 'divby', 'mod', 'has'];

interface Parser {
  peek(): Token;
  take(): Token;
  /** Counts a term; refuses one above the limit. */
  count(token: Token): void;
  /** Parses one nesting level deeper. */
  inside<T>(token: Token, read: () => T): T;
  fail(token: Token, what: string): Error;
  unsupported(token: Token, what: string): Error;
}

function createParser(option: QueryOption, text: string): Parser {
  const tokens = readTokens(option, text);
  const last = tokens.length - 1;
  let next = 0;
  let terms = 0;
  let depth = 0;
  const at = (index: number): Token => tokens[Math.min(index, last)] ?? { kind: 'end', at: 0, text: '' };
  const fail = (token: Token, what: string) => malformedQuery({ option, position: token.at }, what);
  return {
    peek: () => at(next),
    take: () => {
      next += 1;
      return at(next - 1);
    },
    count: (token) => {
      terms += 1;
      if (terms > queryLimits.terms) throw fail(token, `more than ${queryLimits.terms} terms`);
    },
    inside: (token, read) => {
      depth += 1;
      if (depth > queryLimits.depth)
        throw fail(token, `more than ${queryLimits.depth} levels inside one another`);
      const result = read();
      depth -= 1;
      return result;
    },
    fail,
    unsupported: (token, what) => unsupportedQuery({ option, position: token.at }, what),
  };
}

const described = (token: Token) => (token.kind === 'end' ? 'the end' : `'${token.text.slice(0, 40)}'`);

function expect(parser: Parser, kind: '(' | ')' | 'end'): Token {
  const token = parser.take();
  if (token.kind === kind) return token;
  const expected = kind === 'end' ? 'the end' : `'${kind}'`;
  throw parser.fail(token, `expected ${expected}, found ${described(token)}`);
}

/** The next token as an operator in lower case; undefined for anything else. */
function operatorAt(parser: Parser): string | undefined {
  const token = parser.peek();
  return token.kind === 'word' ? token.text.toLowerCase() : undefined;
}

function takeOperator(parser: Parser): Token {
  const token = parser.take();
  parser.count(token);
  return token;
}

function readCall(parser: Parser, name: Token): Expression {
  return parser.inside(name, () => {
    expect(parser, '(');
    const args: Expression[] = [];
    while (parser.peek().kind !== ')') {
      if (args.length > 0) {
        const comma = parser.take();
        if (comma.kind !== ',') throw parser.fail(comma, `expected ',' or ')', found ${described(comma)}`);
      }
      args.push(readExpression(parser));
    }
    expect(parser, ')');
    return { kind: 'call', name: name.text.toLowerCase(), args, at: name.at };
  });
}

function readPrimary(parser: Parser): Expression {
  const token = parser.take();
  if (token.kind === '(') {
    return parser.inside(token, () => {
      const inner = readExpression(parser);
      expect(parser, ')');
      return inner;
    });
  }
  parser.count(token);
  if (token.kind === 'literal') return { kind: 'literal', literal: token.literal, at: token.at };
  if (token.kind !== 'word') throw parser.fail(token, `expected an expression, found ${described(token)}`);
  if (parser.peek().kind === '(') return readCall(parser, token);
  return { kind: 'property', name: token.text, at: token.at };
}

function readUnary(parser: Parser): Expression {
  if (operatorAt(parser) !== 'not') return readPrimary(parser);
  const token = takeOperator(parser);
  return parser.inside(token, () => ({ kind: 'not', of: readUnary(parser), at: token.at }));
}

function readList(parser: Parser): LiteralNode[] {
  expect(parser, '(');
  const list: LiteralNode[] = [];
  for (;;) {
    const token = parser.take();
    parser.count(token);
    if (token.kind !== 'literal') throw parser.fail(token, `expected a literal, found ${described(token)}`);
    list.push({ kind: 'literal', literal: token.literal, at: token.at });
    const after = parser.take();
    if (after.kind === ')') return list;
    if (after.kind !== ',') throw parser.fail(after, `expected ',' or ')', found ${described(after)}`);
  }
}

const isComparison = (name: string | undefined): name is Comparison =>
  COMPARISONS.some((operator) => operator === name);
const isEquality = (name: string | undefined): name is Comparison => name === 'eq' || name === 'ne';

function readRelational(parser: Parser): Expression {
  let left = readUnary(parser);
  for (;;) {
    const operator = operatorAt(parser);
    if (operator !== undefined && foreignOperators.includes(operator))
      throw parser.unsupported(parser.peek(), `the operator ${operator}`);
    if (operator === 'in') {
      const { at } = takeOperator(parser);
      left = { kind: 'in', item: left, list: readList(parser), at };
    } else if (isComparison(operator) && !isEquality(operator)) {
      const { at } = takeOperator(parser);
      left = { kind: 'compare', operator, left, right: readUnary(parser), at };
    } else return left;
  }
}

function readEquality(parser: Parser): Expression {
  let left = readRelational(parser);
  for (;;) {
    const operator = operatorAt(parser);
    if (!isEquality(operator)) return left;
    const { at } = takeOperator(parser);
    left = { kind: 'compare', operator, left, right: readRelational(parser), at };
  }
}

function readTerms(
  parser: Parser,
  kind: 'all' | 'any',
  separator: 'and' | 'or',
  read: () => Expression,
): Expression {
  const first = read();
  const of = [first];
  while (operatorAt(parser) === separator) {
    takeOperator(parser);
    of.push(read());
  }
  return of.length === 1 ? first : { kind, of, at: first.at };
}

function readExpression(parser: Parser): Expression {
  const conjunction = () => readTerms(parser, 'all', 'and', () => readEquality(parser));
  return readTerms(parser, 'any', 'or', conjunction);
}

/**
 * Parses a `$filter` (OData 4.01 URL conventions 5.1.1): comparisons, `in`, `and`, `or`, `not`, calls, literals.
 * Keywords in any case. `typeFilter` judges its meaning.
 * @throws AppError invalid QUERY_INVALID, not_implemented QUERY_NOT_SUPPORTED, both with the position
 */
export function parseFilter(text: string): Expression {
  const parser = createParser('$filter', text);
  const expression = readExpression(parser);
  expect(parser, 'end');
  return expression;
}

function readDirection(parser: Parser): 'asc' | 'desc' {
  const direction = operatorAt(parser);
  if (direction !== 'asc' && direction !== 'desc') return 'asc';
  parser.take();
  return direction;
}

/** Parses an `$orderby` (5.1.4). Throws as `parseFilter`. */
export function parseOrderBy(text: string): Ordering[] {
  const parser = createParser('$orderby', text);
  const orderings: Ordering[] = [];
  for (;;) {
    const start = parser.peek();
    if (orderings.length === queryLimits.orderings)
      throw parser.fail(start, `more than ${queryLimits.orderings} orderings`);
    const by = readExpression(parser);
    orderings.push({ by, direction: readDirection(parser) });
    const after = parser.take();
    if (after.kind === 'end') return orderings;
    if (after.kind !== ',') throw parser.fail(after, `expected ',' or the end, found ${described(after)}`);
  }
}

interface SelectedName {
  readonly name: string;
  readonly at: number;
}

/** Parses a `$select` (5.1.3): names of properties, or `*`, which gives undefined. Throws as `parseFilter`. */
export function parseSelect(text: string): SelectedName[] | undefined {
  if (text.trim() === '*') return undefined;
  const parser = createParser('$select', text);
  const names: SelectedName[] = [];
  for (;;) {
    const token = parser.take();
    parser.count(token);
    if (token.kind !== 'word')
      throw parser.fail(token, `expected the name of a property, found ${described(token)}`);
    names.push({ name: token.text, at: token.at });
    const after = parser.take();
    if (after.kind === 'end') return names;
    if (after.kind === '(') throw parser.unsupported(after, 'a nested option');
    if (after.kind !== ',') throw parser.fail(after, `expected ',' or the end, found ${described(after)}`);
  }
}

/** One part of a key in a path: `name` is undefined for a single part without a name. */
interface KeyPart {
  readonly name: string | undefined;
  readonly value: LiteralNode;
}

const keyParts = 4;

/** Parses the text between the parentheses of `Set(...)`: `'a'` or `x='a',y=1` (4.3.1). Throws as `parseFilter`. */
export function parseKey(text: string): KeyPart[] {
  const parser = createParser('key', text);
  const parts: KeyPart[] = [];
  for (;;) {
    let token = parser.take();
    let name: string | undefined;
    if (token.kind === 'word' && parser.peek().kind === '=') {
      name = token.text;
      parser.take();
      token = parser.take();
    }
    if (token.kind !== 'literal' || parts.length === keyParts)
      throw parser.fail(token, `expected a literal, found ${described(token)}`);
    parts.push({ name, value: { kind: 'literal', literal: token.literal, at: token.at } });
    const after = parser.take();
    if (after.kind === 'end') return parts;
    if (after.kind !== ',') throw parser.fail(after, `expected ',' or the end, found ${described(after)}`);
  }
}

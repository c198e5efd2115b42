import { longestIndexedBytes } from '../../database/schema.ts';
import type { Comparison } from '../language/syntax.ts';
import type { Typed, TypedLiteral } from '../language/typed.ts';

/** The condition of a filter that an index answers. */
export type IndexCondition =
  | { readonly by: 'txId'; readonly txIds: readonly string[] }
  | { readonly by: 'sender'; readonly senderAddress: string }
  | { readonly by: 'blueprint'; readonly blueprintId: string }
  /** sent or received; set by routes, not expressible in a filter */
  | { readonly by: 'wallet'; readonly address: string };

/** The plan of a filter: what narrows the scan of the ledger, and the condition on each row. */
export interface Plan {
  /** Registers named by the filter; undefined: all that the caller sees. */
  readonly registerIds: readonly string[] | undefined;
  readonly indexCondition: IndexCondition | undefined;
  /** inclusive */
  readonly fromDocket: number | undefined;
  /** inclusive */
  readonly toDocket: number | undefined;
  readonly rest: readonly Typed[];
  /** the remaining condition, if the registers alone narrow the scan */
  readonly unindexed: readonly Typed[];
}

/** `column operator value`, whichever side the literal was on. */
interface Fact {
  readonly column: string;
  readonly operator: Comparison;
  readonly values: readonly string[];
}

const mirrored: Readonly<Record<Comparison, Comparison>> = {
  eq: 'eq',
  ne: 'ne',
  gt: 'lt',
  ge: 'le',
  lt: 'gt',
  le: 'ge',
};

function textsOf(literals: readonly TypedLiteral[]): string[] {
  return literals.map(({ value }) => String(value));
}

function factOf(term: Typed): Fact | undefined {
  if (term.kind === 'in' && term.item.kind === 'property' && !term.orNull)
    return { column: term.item.property.column, operator: 'eq', values: textsOf(term.values) };
  if (term.kind !== 'compare') return undefined;
  const { left, right, operator } = term;
  if (left.kind === 'property' && right.kind === 'literal')
    return { column: left.property.column, operator, values: textsOf([right]) };
  if (left.kind === 'literal' && right.kind === 'property')
    return { column: right.property.column, operator: mirrored[operator], values: textsOf([left]) };
  return undefined;
}

/** Integers that fit a docket number; other values are compared row by row. */
function docketRange({ operator, values }: Fact): { from?: number; to?: number } | undefined {
  const [text = ''] = values;
  if (values.length !== 1 || !/^-?\d{1,15}$/.test(text)) return undefined;
  const number = Number(text);
  switch (operator) {
    case 'eq':
      return { from: number, to: number };
    case 'ge':
      return { from: number };
    case 'gt':
      return { from: number + 1 };
    case 'le':
      return { to: number };
    case 'lt':
      return { to: number - 1 };
    default:
      return undefined;
  }
}

function indexConditionOf(fact: Fact): IndexCondition | undefined {
  const [value] = fact.values;
  if (fact.operator !== 'eq' || value === undefined) return undefined;
  // text that is not an id matches nothing, and must not be decoded as bytes
  if (fact.column === 'tx_id') return { by: 'txId', txIds: fact.values.filter(isHash) };
  if (fact.values.length > 1) return undefined;
  if (fact.column === 'sender_address') return { by: 'sender', senderAddress: value };
  if (fact.column === 'blueprint_id' && Buffer.byteLength(value) <= longestIndexedBytes)
    return { by: 'blueprint', blueprintId: value };
  return undefined;
}

const isHash = (value: string) => /^[0-9a-f]{64}$/.test(value);

const rank: Readonly<Record<IndexCondition['by'], number>> = {
  txId: 0,
  wallet: 1,
  sender: 2,
  blueprint: 3,
};

function isBetter(left: IndexCondition | undefined, right: IndexCondition | undefined): boolean {
  if (left === undefined || right === undefined) return left !== undefined;
  return rank[left.by] < rank[right.by];
}

const greatest = (left: number | undefined, right: number | undefined) =>
  left === undefined || (right !== undefined && right > left) ? right : left;
const smallest = (left: number | undefined, right: number | undefined) =>
  left === undefined || (right !== undefined && right < left) ? right : left;

interface Term {
  readonly term: Typed;
  readonly fact: Fact | undefined;
}

function bestIndexCondition(
  terms: readonly Term[],
): { readonly indexCondition: IndexCondition; readonly term: Typed } | undefined {
  let best: { readonly indexCondition: IndexCondition; readonly term: Typed } | undefined;
  for (const { term, fact } of terms) {
    const indexCondition = fact && indexConditionOf(fact);
    if (indexCondition !== undefined && isBetter(indexCondition, best?.indexCondition))
      best = { indexCondition, term };
  }
  return best;
}

/**
 * Plans a filter over transactions or dockets: at most one condition chooses the index, ranges of dockets bound the
 * scan, and the rest is evaluated on every row. Pure.
 */
export function planFilter(filter: Typed | undefined): Plan {
  const whole = filter === undefined ? [] : filter.kind === 'all' ? filter.of : [filter];
  const terms: Term[] = whole.map((term) => ({ term, fact: factOf(term) }));
  const named = terms.find(({ fact }) => fact?.column === 'register_id' && fact.operator === 'eq');
  const best = bestIndexCondition(terms);
  const ranges = terms.flatMap(({ term, fact }) => {
    const range = fact?.column === 'docket_number' ? docketRange(fact) : undefined;
    return range === undefined ? [] : [{ term, ...range }];
  });
  const answered = new Set([named?.term, best?.term, ...ranges.map(({ term }) => term)]);
  return {
    registerIds: named?.fact?.values,
    indexCondition: best?.indexCondition,
    fromDocket: ranges.map(({ from }) => from).reduce(greatest, undefined),
    toDocket: ranges.map(({ to }) => to).reduce(smallest, undefined),
    rest: whole.filter((term) => !answered.has(term)),
    unindexed: whole.filter((term) => term !== named?.term),
  };
}

import { ENTITY_SETS, findProperty } from '../language/model.ts';
import type { Comparison } from '../language/syntax.ts';
import { instantText } from '../language/tokens.ts';
import type { Typed, TypedLiteral } from '../language/typed.ts';

/** The condition on transactions for a route parameter: `name operator text`. */
export function textTerm(name: string, operator: Comparison, value: string): Typed {
  return term(name, operator, { kind: 'literal', type: 'string', value });
}

/** A condition on the time of transactions, in microseconds since the epoch. */
export function timeTerm(operator: Comparison, micros: number): Typed {
  return term('timestamp', operator, {
    kind: 'literal',
    type: 'instant',
    value: instantText(BigInt(micros)),
  });
}

function term(name: string, operator: Comparison, right: TypedLiteral): Typed {
  const property = findProperty(ENTITY_SETS.Transactions, name);
  if (property === undefined) throw new Error(`transactions have no ${name}`);
  const left: Typed = { kind: 'property', type: right.type, property };
  return { kind: 'compare', type: 'boolean', operator, left, right };
}

/** The conjunction of some conditions; undefined when there is none. */
export function allOf(terms: readonly Typed[]): Typed | undefined {
  return terms.length === 0 ? undefined : { kind: 'all', type: 'boolean', of: terms };
}

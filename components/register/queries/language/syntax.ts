import type { AppError } from '#core/errors/errors.ts';
import { refusal } from '../../errors.ts';

/** Comparison operators of OData (URL conventions 5.1.1.1), as they are printed. */
export const COMPARISONS = ['eq', 'ne', 'gt', 'ge', 'lt', 'le'] as const;
export type Comparison = (typeof COMPARISONS)[number];

export type LiteralValue =
  | { readonly type: 'null' }
  | { readonly type: 'boolean'; readonly value: boolean }
  /** text of an integer or a decimal, as PostgreSQL's numeric reads it */
  | { readonly type: 'number'; readonly value: string }
  | { readonly type: 'string'; readonly value: string }
  /** YYYY-MM-DDTHH:mm:ss.ffffffZ */
  | { readonly type: 'instant'; readonly value: string }
  /** YYYY-MM-DD */
  | { readonly type: 'date'; readonly value: string }
  /** lower case, with hyphens */
  | { readonly type: 'guid'; readonly value: string };

export interface LiteralNode {
  readonly kind: 'literal';
  readonly literal: LiteralValue;
  /** Number of characters before it. */
  readonly at: number;
}

/** A parsed expression. `at` locates it in later errors. */
export type Expression =
  | LiteralNode
  | { readonly kind: 'property'; readonly name: string; readonly at: number }
  | {
      readonly kind: 'call';
      readonly name: string;
      readonly args: readonly Expression[];
      readonly at: number;
    }
  | {
      readonly kind: 'compare';
      readonly operator: Comparison;
      readonly left: Expression;
      readonly right: Expression;
      readonly at: number;
    }
  | {
      readonly kind: 'in';
      readonly item: Expression;
      readonly list: readonly LiteralNode[];
      readonly at: number;
    }
  | { readonly kind: 'not'; readonly of: Expression; readonly at: number }
  /** `all`: and; `any`: or. Two or more terms. */
  | { readonly kind: 'all' | 'any'; readonly of: readonly Expression[]; readonly at: number };

export interface Ordering {
  readonly by: Expression;
  readonly direction: 'asc' | 'desc';
}

/** Limits of a query: larger ones are refused before the database is queried. */
export const queryLimits = {
  characters: 4_096,
  /** nested parentheses, calls and negations */
  depth: 16,
  /** names, literals, calls and operators */
  terms: 200,
  orderings: 5,
} as const;

export type QueryOption =
  | '$filter'
  | '$orderby'
  | '$select'
  | '$top'
  | '$skip'
  | '$count'
  | '$skiptoken'
  | '$format'
  | 'cursor'
  | 'key';

/** Location of an error in an option. `position` counts UTF-16 units from 0. */
interface QueryLocation {
  readonly option: QueryOption;
  readonly position: number;
}

/** A syntax or type error: 400 with the location. */
export function malformedQuery(location: QueryLocation, what: string): AppError {
  const message = `${location.option}, position ${location.position}: ${what}.`;
  return refusal('QUERY_INVALID', { message, details: { ...location } });
}

/** A part of OData that is not supported: 501 with the location. */
export function unsupportedQuery(location: QueryLocation, what: string): AppError {
  const message = `${location.option}, position ${location.position}: ${what} is not supported.`;
  return refusal('QUERY_NOT_SUPPORTED', { message, details: { ...location } });
}

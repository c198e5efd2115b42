import { z } from 'zod';
import { isBase64Url } from '#core/encoding/base64.ts';
import type { EntitySet, Property } from '../language/model.ts';
import { findProperty } from '../language/model.ts';
import { parseFilter, parseKey, parseOrderBy, parseSelect } from '../language/parse.ts';
import { type Expression, malformedQuery, type QueryOption, unsupportedQuery } from '../language/syntax.ts';
import { type Typed, type TypingContext, typeFilter, typeOrdering } from '../language/typed.ts';
import type { TypedOrdering } from '../translation/store.ts';
import type { Start } from './search.ts';

/** Raw query options: text by name. */
export type RawOptions = Readonly<Record<string, string>>;

interface Options {
  readonly filter: Typed | undefined;
  readonly orderings: readonly TypedOrdering[];
  /** undefined: all properties */
  readonly select: readonly Property[] | undefined;
  readonly top: number | undefined;
  readonly count: boolean;
  readonly start: Start;
}

const maxTop = 100;
const maxSkip = 10_000;

/** Options of OData that are not supported here. */
const foreign: readonly string[] = [
  '$expand',
  '$search',
  '$apply',
  '$compute',
  '$levels',
  '$index',
  '$deltatoken',
  '$schemaversion',
];

function integer(option: '$top' | '$skip', text: string | undefined, limit: number): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw malformedQuery({ option, position: 0 }, 'expected a whole number');
  const value = Number(text);
  if (value <= limit) return value;
  const name = option === '$top' ? 'Top' : 'Skip';
  throw malformedQuery(
    { option, position: 0 },
    `The limit of '${limit}' for ${name} query has been exceeded`,
  );
}

function flag(option: QueryOption, text: string | undefined): boolean {
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  throw malformedQuery({ option, position: 0 }, 'expected true or false');
}

const token = z.object({
  /** register, docket, position, microseconds */
  at: z
    .tuple([
      z.string().regex(/^[0-9a-f]{32}$/),
      z.int().min(0),
      z.int().min(0),
      z.string().regex(/^-?\d{1,18}$/),
    ])
    .optional(),
  skip: z.int().min(0).max(1_000_000),
});

/** Formats the `$skiptoken` for a location. It encodes a position only; access is checked on every request. */
export function printStart({ after, offset }: Start): string {
  const at = after && [
    after.registerId,
    after.location.docketNumber,
    after.location.position,
    after.location.micros,
  ];
  return Buffer.from(JSON.stringify({ ...(at && { at }), skip: offset })).toString('base64url');
}

/** Parses the text of `printStart`. Throws QUERY_INVALID. */
export function parseStart(text: string, option: QueryOption = '$skiptoken'): Start {
  const refuse = () => malformedQuery({ option, position: 0 }, 'not a token of this service');
  let value: unknown;
  if (!isBase64Url(text)) throw refuse();
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    throw refuse();
  }
  const read = token.safeParse(value);
  if (!read.success) throw refuse();
  const { at, skip } = read.data;
  if (at === undefined) return { after: undefined, offset: skip };
  const [registerId, docketNumber, position, micros] = at;
  return { after: { registerId, location: { docketNumber, position, micros } }, offset: skip };
}

function selected(set: EntitySet, text: string): readonly Property[] | undefined {
  const names = parseSelect(text);
  return names?.map(({ name, at }) => {
    const property = findProperty(set, name);
    if (property === undefined)
      throw malformedQuery({ option: '$select', position: at }, `${set.name} have no property '${name}'`);
    return property;
  });
}

function refuseUnknown(options: RawOptions, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const name = unknown.slice(0, 64);
  // known options appear in the error under their own name, all others under the given one
  const location = { option: name as QueryOption, position: 0 };
  throw foreign.includes(unknown)
    ? unsupportedQuery(location, 'the option')
    : malformedQuery(location, 'no such option');
}

/** Parses and types a filter of an entity set. Throws as `typeFilter`. */
export function readFilter(set: EntitySet, text: string, nowMicros: bigint): Typed {
  return typeFilter({ set, option: '$filter', nowMicros }, parseFilter(text));
}

const collectionOptions = [
  '$filter',
  '$orderby',
  '$select',
  '$top',
  '$skip',
  '$count',
  '$skiptoken',
  '$format',
];

function refuseFormat(text: string | undefined): void {
  if (text === undefined || /^(?:json|application\/json(?:;.*)?)$/i.test(text)) return;
  throw unsupportedQuery({ option: '$format', position: 0 }, 'the format');
}

/**
 * Parses the options of a collection.
 * @throws AppError invalid QUERY_INVALID, not_implemented QUERY_NOT_SUPPORTED, both with option and position
 */
export function readOptions(set: EntitySet, options: RawOptions, nowMicros: bigint): Options {
  refuseUnknown(options, collectionOptions);
  refuseFormat(options['$format']);
  const context: TypingContext = { set, option: '$orderby', nowMicros };
  const { $filter: filter, $orderby: orderBy, $select: select, $skiptoken: skipToken } = options;
  const skip = integer('$skip', options['$skip'], maxSkip) ?? 0;
  return {
    filter: filter === undefined ? undefined : readFilter(set, filter, nowMicros),
    orderings:
      orderBy === undefined
        ? []
        : parseOrderBy(orderBy).map(({ by, direction }) => ({ by: typeOrdering(context, by), direction })),
    select: select === undefined ? undefined : selected(set, select),
    top: integer('$top', options['$top'], maxTop),
    count: flag('$count', options['$count']),
    start: skipToken === undefined ? { after: undefined, offset: skip } : parseStart(skipToken),
  };
}

/** The options of one entity: `$select` and `$format`. Throws as `readOptions`. */
export function readEntityOptions(set: EntitySet, options: RawOptions): readonly Property[] | undefined {
  refuseUnknown(options, ['$select', '$format']);
  refuseFormat(options['$format']);
  const { $select: select } = options;
  return select === undefined ? undefined : selected(set, select);
}

/** The filter of `Set/$count`, which takes no other option. Throws as `readOptions`. */
export function readCountOptions(set: EntitySet, options: RawOptions, nowMicros: bigint): Typed | undefined {
  refuseUnknown(options, ['$filter']);
  const { $filter: filter } = options;
  return filter === undefined ? undefined : readFilter(set, filter, nowMicros);
}

/**
 * The filter for a key in a path. A single unnamed part is the last property of the set's key: the id of a transaction
 * suffices. Throws as `typeFilter`.
 */
export function readKey(set: EntitySet, text: string, nowMicros: bigint): Typed {
  const parts = parseKey(text);
  const [only] = parts;
  const anonymous = parts.length === 1 && only?.name === undefined;
  const names = parts.map(({ name }) => name ?? set.keys.at(-1) ?? '');
  const complete = set.keys.every((key) => names.includes(key)) && names.length === set.keys.length;
  const alone = anonymous && set.name !== 'Dockets';
  if (!complete && !alone)
    throw malformedQuery({ option: 'key', position: 0 }, `the key is ${set.keys.join(', ')}`);
  const of = parts.map(
    ({ value }, index): Expression => ({
      kind: 'compare',
      operator: 'eq',
      left: { kind: 'property', name: names[index] ?? '', at: value.at },
      right: value,
      at: value.at,
    }),
  );
  const [first] = of;
  const whole: Expression = of.length === 1 && first !== undefined ? first : { kind: 'all', of, at: 0 };
  return typeFilter({ set, option: 'key', nowMicros }, whole);
}

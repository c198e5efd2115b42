import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { innerSchemas } from '../json-schema.ts';
import type { JsonSchema } from '../model/values.ts';
import { findPattern } from './patterns.ts';
import { variantsOf } from './properties.ts';
import { resolveLocal } from './references.ts';

type Path = readonly (string | number)[];

/** A value of a payload with a schema that applies to it, or may. */
interface AppliedSchema {
  readonly path: Path;
  readonly value: unknown;
  readonly schema: JsonObject;
}

/**
 * The values of a payload whose schemas have a keyword; a schema of several alternatives counts whichever of them the value
 * matches. The schemas are bounded, as those that compile are, and free of circles.
 */
export function* valuesUnder(
  schemas: readonly JsonSchema[],
  payload: unknown,
  keyword: string,
): Generator<AppliedSchema> {
  for (const root of schemas) {
    const known = new Map<JsonObject, boolean>();
    const leads = (schema: unknown): boolean => leadsTo({ root, keyword, known }, schema);
    yield* below({ keyword, leads }, { root, value: payload, path: [] }, root);
  }
}

/** A place of a payload at which a schema has a keyword. */
interface DeclaredPlace {
  /** Names of properties; undefined for a place inside a list, or with a name that no schema says. */
  readonly path: readonly string[] | undefined;
  readonly schema: JsonObject;
}

/** Keywords whose schemas are for other values than those at one named place. */
const UNNAMED: ReadonlySet<string> = new Set([
  'patternProperties',
  'additionalProperties',
  'unevaluatedProperties',
  'items',
  'prefixItems',
  'unevaluatedItems',
]);

/** The places at which schemas have a keyword, whatever the payload is; a place may come several times. */
export function* placesOf(schemas: readonly JsonSchema[], keyword: string): Generator<DeclaredPlace> {
  for (const root of schemas) {
    const known = new Map<JsonObject, boolean>();
    const leads = (schema: unknown): boolean => leadsTo({ root, keyword, known }, schema);
    yield* placesBelow({ keyword, leads }, { root, path: [] }, root);
  }
}

function* placesBelow(
  walk: Walk,
  at: { readonly root: JsonSchema; readonly path: DeclaredPlace['path'] },
  start: unknown,
): Generator<DeclaredPlace> {
  const { root, path } = at;
  for (const { schema } of variantsOf(root, start)) {
    if (!walk.leads(schema)) continue;
    if (Object.hasOwn(schema, walk.keyword)) yield { path, schema };
    for (const [below, inner] of innerPlaces(schema, path)) {
      if (walk.leads(inner)) yield* placesBelow(walk, { root, path: below }, inner);
    }
  }
}

/** The schemas of what is inside a value, with its place. */
function innerPlaces(
  schema: JsonObject,
  path: DeclaredPlace['path'],
): readonly (readonly [DeclaredPlace['path'], unknown])[] {
  return [...innerSchemas(schema)].flatMap(([[keyword = '', name = ''], inner]) => {
    if (keyword === 'properties') return [[path && [...path, name], inner] as const];
    return UNNAMED.has(keyword) ? [[undefined, inner] as const] : [];
  });
}

interface Search {
  readonly root: JsonSchema;
  readonly keyword: string;
  readonly known: Map<JsonObject, boolean>;
}

/** Whether a schema, or one inside or behind it, has the keyword. */
function leadsTo(search: Search, schema: unknown): boolean {
  if (!isJsonObject(schema)) return false;
  const before = search.known.get(schema);
  if (before !== undefined) return before;
  search.known.set(schema, false);
  const referred = schema['$ref'] === undefined ? undefined : resolveLocal(search.root, schema['$ref']);
  const leads =
    Object.hasOwn(schema, search.keyword) ||
    leadsTo(search, referred) ||
    [...innerSchemas(schema)].some(([, inner]) => leadsTo(search, inner));
  search.known.set(schema, leads);
  return leads;
}

interface Walk {
  readonly keyword: string;
  readonly leads: (schema: unknown) => boolean;
}

interface ValueAt {
  readonly root: JsonSchema;
  readonly value: unknown;
  readonly path: Path;
}

function* below(walk: Walk, at: ValueAt, start: unknown): Generator<AppliedSchema> {
  const { root, value, path } = at;
  for (const { schema } of variantsOf(root, start)) {
    if (!walk.leads(schema)) continue;
    if (Object.hasOwn(schema, walk.keyword)) yield { path, value, schema };
    for (const [step, inner, schemaOf] of membersOf(schema, value)) {
      if (walk.leads(schemaOf)) yield* below(walk, { root, value: inner, path: [...path, step] }, schemaOf);
    }
  }
}

/** A member with its name or position, and a schema for it. */
type Member = readonly [string | number, unknown, unknown];

/** The members of an object or a list, each with the schemas that this one has for it. */
function membersOf(schema: JsonObject, value: unknown): readonly Member[] {
  if (Array.isArray(value)) return itemsOf(schema, value);
  return isJsonObject(value) ? propertiesOf(schema, value) : [];
}

function itemsOf({ prefixItems, items, unevaluatedItems }: JsonObject, value: readonly unknown[]): Member[] {
  const first = Array.isArray(prefixItems) ? prefixItems : [];
  return value.map((inner, index) => [
    index,
    inner,
    index < first.length ? first[index] : (items ?? unevaluatedItems),
  ]);
}

function propertiesOf(schema: JsonObject, value: JsonObject): Member[] {
  const { properties, patternProperties, additionalProperties, unevaluatedProperties } = schema;
  const patterns = isJsonObject(patternProperties) ? Object.entries(patternProperties) : [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const named = isJsonObject(properties) && Object.hasOwn(properties, name) ? [properties[name]] : [];
    const matching = patterns.filter(([source]) => findPattern(source)?.test(name) === true);
    const declared = [...named, ...matching.map(([, each]) => each)];
    const all = declared.length > 0 ? declared : [additionalProperties ?? unevaluatedProperties];
    return all.map((each): Member => [name, inner, each]);
  });
}

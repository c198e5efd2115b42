import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import type { JsonSchema } from '../model/values.ts';
import { resolveLocal } from './references.ts';

/** A schema with the document that its references resolve in. */
interface PlacedSchema {
  readonly root: JsonSchema;
  readonly schema: JsonObject;
}

const LISTS = ['allOf', 'anyOf', 'oneOf'] as const;
const SINGLE = ['if', 'then', 'else'] as const;

/** The schemas that apply to the same value as a schema does, or may, one step away. */
function besides(root: JsonSchema, schema: JsonObject): unknown[] {
  const { $ref, dependentSchemas } = schema;
  const lists = LISTS.map((keyword) => schema[keyword]).filter(Array.isArray);
  return [
    $ref === undefined ? undefined : resolveLocal(root, $ref),
    ...lists.flat(),
    ...SINGLE.map((keyword) => schema[keyword]),
    ...(isJsonObject(dependentSchemas) ? Object.values(dependentSchemas) : []),
  ];
}

/** The schemas that may apply to the same value as a schema does, itself among them. */
export function variantsOf(root: JsonSchema, start: unknown): PlacedSchema[] {
  const found = new Set([start].filter(isJsonObject));
  // A set is iterated in the order of insertion, with what is added meanwhile.
  for (const schema of found) {
    for (const other of besides(root, schema)) if (isJsonObject(other)) found.add(other);
  }
  return [...found].map((schema) => ({ root, schema }));
}

function propertyOf({ root, schema }: PlacedSchema, name: string): PlacedSchema[] {
  const { properties } = schema;
  return isJsonObject(properties) && Object.hasOwn(properties, name)
    ? variantsOf(root, properties[name])
    : [];
}

function payloadSchemas(schemas: readonly JsonSchema[]): PlacedSchema[] {
  return schemas.flatMap((schema) => variantsOf(schema, schema));
}

/** The schemas of the value at a place in a payload; none when no schema declares it. */
export function schemasAt(schemas: readonly JsonSchema[], names: readonly string[]): readonly JsonObject[] {
  const places = names.reduce(
    (at, name) => at.flatMap((place) => propertyOf(place, name)),
    payloadSchemas(schemas),
  );
  return places.map(({ schema }) => schema);
}

/** Names of the properties that the schemas of a payload declare. */
export function propertyNames(schemas: readonly JsonSchema[]): ReadonlySet<string> {
  return new Set(
    payloadSchemas(schemas).flatMap(({ schema: { properties } }) =>
      isJsonObject(properties) ? Object.keys(properties) : [],
    ),
  );
}

/** Types that a schema names; a schema with items and no type is one of lists. */
export function typesOf({ type, items, prefixItems }: JsonObject): readonly unknown[] {
  if (Array.isArray(type)) return type;
  if (type !== undefined) return [type];
  return items === undefined && prefixItems === undefined ? [] : ['array'];
}

/** Whether a pointer into a payload leads into a list. */
export function passesList(schemas: readonly JsonSchema[], names: readonly string[]): boolean {
  return names.some((_, index) =>
    schemasAt(schemas, names.slice(0, index)).some((schema) => typesOf(schema).includes('array')),
  );
}

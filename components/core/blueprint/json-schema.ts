import { isJsonObject, type JsonObject } from '../encoding/json.ts';

/** Whether a keyword of a JSON Schema is left out of a comparison. */
type IsLeftOut = (keyword: string) => boolean;

const ANNOTATIONS: ReadonlySet<string> = new Set(['title', 'description', 'examples', '$comment']);
const PRESENTATION: ReadonlySet<string> = new Set([
  'x-pages',
  'x-sections',
  'x-width',
  'x-introduction',
  'x-review',
  'x-address-lookup',
  'x-persona',
]);

/** Keywords whose value is a map of schemas, a list of schemas, and one schema. */
const MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
]);
const LISTS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const SINGLE: ReadonlySet<string> = new Set([
  'items',
  'additionalProperties',
  'contains',
  'not',
  'if',
  'then',
  'else',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contentSchema',
]);

function below(keyword: string, value: unknown, isLeftOut: IsLeftOut): unknown {
  const strip = (schema: unknown) => stripSchema(schema, isLeftOut);
  if (SINGLE.has(keyword)) return strip(value);
  if (LISTS.has(keyword) && Array.isArray(value)) return value.map(strip);
  if (!MAPS.has(keyword) || !isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, strip(schema)]));
}

/** Whether a keyword of a JSON Schema holds one schema, a list of them, or a map of them. */
function kindOf(keyword: string, value: unknown): 'one' | 'many' | 'none' {
  if (SINGLE.has(keyword)) return 'one';
  if (LISTS.has(keyword) && Array.isArray(value)) return 'many';
  return MAPS.has(keyword) && isJsonObject(value) ? 'many' : 'none';
}

/** The schemas directly inside a schema, with the names that lead to them. */
export function* innerSchemas(schema: unknown): Generator<readonly [readonly string[], unknown]> {
  if (!isJsonObject(schema)) return;
  for (const [keyword, value] of Object.entries(schema)) {
    const kind = kindOf(keyword, value);
    if (kind === 'one') yield [[keyword], value];
    if (kind === 'many') {
      for (const [name, inner] of Object.entries(value as object)) yield [[keyword, name], inner];
    }
  }
}

/** The schema that begins a path inside a schema, and the number of names that lead to it; undefined without one. */
export function innerSchema(
  schema: unknown,
  [keyword = '', name = '']: readonly string[],
): { readonly inner: unknown; readonly names: number } | undefined {
  if (!isJsonObject(schema) || !Object.hasOwn(schema, keyword)) return undefined;
  const value = schema[keyword];
  const kind = kindOf(keyword, value);
  if (kind === 'one') return { inner: value, names: 1 };
  const holder = value as JsonObject;
  return kind === 'many' && Object.hasOwn(holder, name) ? { inner: holder[name], names: 2 } : undefined;
}

/** Removes keywords from a JSON Schema at every place where a schema may be. Properties of the same name remain. */
export function stripSchema(schema: unknown, isLeftOut: IsLeftOut): unknown {
  if (!isJsonObject(schema)) return schema;
  const kept = Object.entries(schema).filter(([keyword]) => !isLeftOut(keyword));
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, below(keyword, value, isLeftOut)]));
}

/** Texts for readers: no structure. */
export const isAnnotation: IsLeftOut = (keyword) => ANNOTATIONS.has(keyword);

/** Texts for readers and the appearance of forms: no behaviour. */
export const isPresentation: IsLeftOut = (keyword) => ANNOTATIONS.has(keyword) || PRESENTATION.has(keyword);

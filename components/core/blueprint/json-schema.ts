import { isJsonObject } from '../encoding/json.ts';

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

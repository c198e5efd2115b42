import { z } from 'zod';

const jsonObject = z.record(z.string(), z.unknown());
type JsonObject = z.output<typeof jsonObject>;

/**
 * Formats that define a value's shape completely; code generators turn such values into types that no pattern applies
 * to.
 */
const typedFormats: ReadonlySet<unknown> = new Set(['uuid', 'date', 'date-time']);

/**
 * A document whose schemas mean the same to readers in other languages. The differences are those of zod's output:
 *
 * - A pattern beside the formats uuid, date and date-time is left out: generated clients parse such values and fail
 *   where they match the parsed value with a pattern.
 * - A pattern with a Unicode property (`\p{..}`) is left out: ECMA-262 reads it, Python's `re` and others do not.
 * - A slash in a pattern is not escaped: JSON Schema patterns have no delimiters.
 * - The bounds of a safe integer become `format: int64`, and integers of a narrower range keep their bounds.
 * - `propertyNames: {type: string}` says nothing in JSON and is left out.
 * - A request body that may be null is one that may be absent.
 * - A boolean that has one value is a boolean: generated clients compare such an enum with the text of a value.
 */
export function portableDocument(document: object): object {
  return jsonObject.parse(portableValue(document));
}

function portableValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(portableValue);
  const object = jsonObject.safeParse(value);
  if (!object.success) return value;
  const members = Object.entries(object.data).map(
    ([name, member]) => [name, portableMember(name, member)] as const,
  );
  return portableSchema(Object.fromEntries(members));
}

function portableMember(name: string, member: unknown): unknown {
  if (name === 'properties') return portableProperties(member);
  return portableValue(name === 'requestBody' ? withoutNullBody(member) : member);
}

const nullableBody = z.looseObject({
  content: z.record(
    z.string(),
    z.looseObject({
      schema: z.looseObject({ anyOf: z.tuple([jsonObject, z.object({ type: z.literal('null') })]) }),
    }),
  ),
});

function withoutNullBody(body: unknown): unknown {
  const nullable = nullableBody.safeParse(body).data;
  if (nullable === undefined) return body;
  const content = Object.entries(nullable.content).map(([mediaType, { schema, ...beside }]) => {
    const { anyOf, ...others } = schema;
    return [mediaType, { schema: { ...anyOf[0], ...others }, ...beside }] as const;
  });
  return { ...nullable, required: false, content: Object.fromEntries(content) };
}

/** The members of `properties` are schemas, whatever their names. */
function portableProperties(value: unknown): unknown {
  const object = jsonObject.safeParse(value);
  if (!object.success) return value;
  return Object.fromEntries(
    Object.entries(object.data).map(([name, schema]) => [name, portableValue(schema)]),
  );
}

function portableSchema(schema: JsonObject): JsonObject {
  return portableNames(portableBoolean(portableInteger(portablePattern(schema))));
}

function portablePattern(schema: JsonObject): JsonObject {
  const { pattern, ...others } = schema;
  if (typeof pattern !== 'string') return schema;
  if (typedFormats.has(schema['format']) || /\\[pP]\{/.test(pattern)) return others;
  const unescaped = pattern.replaceAll(/\\(.)/gsu, (pair, character) => (character === '/' ? '/' : pair));
  return { ...schema, pattern: unescaped };
}

function portableBoolean(schema: JsonObject): JsonObject {
  const { enum: _values, const: _value, ...others } = schema;
  return schema['type'] === 'boolean' ? others : schema;
}

function portableInteger(schema: JsonObject): JsonObject {
  const { minimum, maximum, ...others } = schema;
  if (schema['type'] !== 'integer') return schema;
  const isLowest = minimum === Number.MIN_SAFE_INTEGER;
  const isHighest = maximum === Number.MAX_SAFE_INTEGER;
  if (!isLowest && !isHighest) return schema;
  return {
    ...others,
    ...(isLowest || minimum === undefined ? {} : { minimum }),
    ...(isHighest || maximum === undefined ? {} : { maximum }),
    format: 'int64',
  };
}

function portableNames(schema: JsonObject): JsonObject {
  const { propertyNames, ...others } = schema;
  const names = jsonObject.safeParse(propertyNames).data;
  const isAnyText = names !== undefined && Object.keys(names).length === 1 && names['type'] === 'string';
  return isAnyText ? others : schema;
}

import { z } from 'zod';
import { operatorError } from '../errors.ts';

/** A node of the structural OpenAPI v3 schema of a CRD. */
export type StructuralSchema = Readonly<Record<string, unknown>>;

type Node = Readonly<Record<string, unknown>>;

/** Keywords of a structural schema, in the order they are written. */
const KEYWORDS = [
  'description',
  'type',
  'format',
  'nullable',
  'default',
  'enum',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
  'required',
] as const;

const INT_OR_STRING = 'x-kubernetes-int-or-string';

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuse(path: string, why: string): never {
  throw operatorError('SCHEMA_NOT_STRUCTURAL', `${path === '' ? 'schema' : path}: ${why}`);
}

/** Keywords that the API server refuses in a structural schema, with the remedy. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  definitions: 'named and recursive schemas are not structural; write the schema where it is used',
  $ref: 'named and recursive schemas are not structural; write the schema where it is used',
  anyOf: 'unions are not structural; make optional members and a rule "exactly one"',
  oneOf: 'unions are not structural; make optional members and a rule "exactly one"',
  allOf: 'intersections are not structural; extend the object',
  not: 'negations are not structural; write a rule',
  pattern: 'write text({pattern, message}), whose rule names the remedy',
  exclusiveMinimum: 'write an inclusive bound',
  exclusiveMaximum: 'write an inclusive bound',
};

function forbid(node: Node, path: string): void {
  for (const [name, why] of Object.entries(FORBIDDEN)) {
    if (name in node && !(name === 'anyOf' && node[INT_OR_STRING] === true)) refuse(path, why);
  }
  const known = new Set<string>([...KEYWORDS, 'properties', 'items', 'additionalProperties', 'anyOf']);
  for (const name of Object.keys(node)) if (!known.has(name)) refuse(path, `member ${name} is not known`);
}

/** What each type must state; the text names what is missing. */
const REQUIREMENTS: Readonly<Record<string, (node: Node) => string | undefined>> = {
  boolean: () => undefined,
  string: (node) =>
    ['maxLength', 'enum', 'format'].some((name) => name in node) ? undefined : 'the text has no maxLength',
  integer: (node) => ('minimum' in node && 'maximum' in node ? undefined : 'the number has no bounds'),
  array: (node) => {
    if (!('maxItems' in node)) return 'the list has no maxItems';
    return isNode(node['items']) ? undefined : 'the list has no items';
  },
  object: (node) => {
    if (isNode(node['additionalProperties'])) {
      return 'maxProperties' in node ? undefined : 'the map has no maxProperties';
    }
    return isNode(node['properties']) ? undefined : 'the object says nothing of its members';
  },
};

/** The API server estimates the cost of a rule from the largest possible value, so everything needs a bound. */
function requireBounds(node: Node, path: string): void {
  const requirement = REQUIREMENTS[String(node['type'])];
  const lacking =
    requirement === undefined ? `type ${String(node['type'])} is not structural` : requirement(node);
  if (lacking !== undefined) refuse(path, lacking);
}

function convert(node: Node, path: string): StructuralSchema {
  forbid(node, path);
  const intOrString = node[INT_OR_STRING] === true;
  if (!intOrString) requireBounds(node, path);
  const keywords = Object.fromEntries(
    KEYWORDS.flatMap((name) => (node[name] === undefined ? [] : [[name, node[name]]])),
  );
  if (intOrString) delete keywords['type'];
  if (keywords['type'] === 'integer') keywords['format'] = 'int64';
  const { properties, items, additionalProperties } = node;
  return {
    ...keywords,
    ...(isNode(items) ? { items: convertChild(items, `${path}[]`) } : {}),
    ...(isNode(properties) ? { properties: convertMembers(properties, path) } : {}),
    ...(isNode(additionalProperties)
      ? { additionalProperties: convertChild(additionalProperties, `${path}.*`) }
      : {}),
  };
}

function convertChild(node: unknown, path: string): StructuralSchema {
  return isNode(node) ? convert(node, path) : refuse(path, 'not a schema');
}

function convertMembers(properties: Node, path: string): Node {
  return Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [
      name,
      convertChild(member, path === '' ? name : `${path}.${name}`),
    ]),
  );
}

/**
 * The structural schema of the input of a zod schema, with rules and bounds. `additionalProperties: false` of strict
 * objects is dropped, because the API server prunes and validates unknown fields itself.
 * @throws AppError internal SCHEMA_NOT_STRUCTURAL, with path and remedy, for a construct that a CRD cannot express
 */
export function structuralSchema(schema: z.ZodType): StructuralSchema {
  const json = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    unrepresentable: 'any',
    reused: 'inline',
    cycles: 'ref',
  });
  const { $schema: _dialect, ...node } = json as Node;
  return convert(node, '');
}

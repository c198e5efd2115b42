import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';

/** A node of a structural OpenAPI v3 schema, as a CRD holds it. */
export type StructuralSchema = Readonly<Record<string, unknown>>;

type Node = Readonly<Record<string, unknown>>;

/** Members that a node keeps, in the order they are written. */
const KEPT = [
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
  throw new AppError('internal', 'SCHEMA_NOT_STRUCTURAL', `${path === '' ? 'schema' : path}: ${why}`);
}

/** What may not stand in a structural schema, with what to write instead (notes/operator.md 3.5). */
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
  const known = new Set<string>([...KEPT, 'properties', 'items', 'additionalProperties', 'anyOf']);
  for (const name of Object.keys(node)) if (!known.has(name)) refuse(path, `member ${name} is not known`);
}

/** What each type must state, and how it is said when it does not. */
const DEMANDS: Readonly<Record<string, (node: Node) => string | undefined>> = {
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

/** The cost of a rule is judged by the largest value: everything has a bound. */
function demandBounds(node: Node, path: string): void {
  const demand = DEMANDS[String(node['type'])];
  const lacking = demand === undefined ? `type ${String(node['type'])} is not structural` : demand(node);
  if (lacking !== undefined) refuse(path, lacking);
}

function convert(node: Node, path: string): StructuralSchema {
  forbid(node, path);
  const intOrString = node[INT_OR_STRING] === true;
  if (!intOrString) demandBounds(node, path);
  const kept = Object.fromEntries(
    KEPT.flatMap((name) => (node[name] === undefined ? [] : [[name, node[name]]])),
  );
  if (intOrString) delete kept['type'];
  if (kept['type'] === 'integer') kept['format'] = 'int64';
  const { properties, items, additionalProperties } = node;
  return {
    ...kept,
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
 * The structural schema of a zod schema: what it takes in, rules and bounds included. Strict objects lose
 * `additionalProperties: false`: pruning and strict field validation of the API server say it.
 * @throws AppError internal SCHEMA_NOT_STRUCTURAL, with path and remedy, for a construct that no CRD can hold
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

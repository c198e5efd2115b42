import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { innerSchemas } from '../json-schema.ts';
import { jsonPointer } from '../members.ts';
import type { Blueprint } from '../model/blueprint.ts';
import { errorAt, type Finding } from '../model/finding.ts';
import type { JsonSchema } from '../model/values.ts';
import { resolveLocal, resolveShared, type SharedSchemas } from './references.ts';

type Path = readonly (string | number)[];

/** Schemas that the references of a definition may become. */
const MAX_SCHEMAS = 20_000;

interface Flattening {
  readonly shared: SharedSchemas;
  readonly findings: Finding[];
  count: number;
}

/** Where a schema was taken from. */
interface Origin {
  /** The shared schema, for what was copied from one; references to the action's own schema remain. */
  readonly root: JsonObject | undefined;
  /** Shared schemas that are being copied. */
  readonly open: readonly unknown[];
}

/** Sets a value at a short path in a copy of a schema. */
function withInner(schema: JsonObject, [keyword = '', name]: readonly string[], inner: unknown): JsonObject {
  if (name === undefined) return { ...schema, [keyword]: inner };
  const holder = schema[keyword];
  const changed = Array.isArray(holder)
    ? holder.map((item, index) => (String(index) === name ? inner : item))
    : { ...(holder as JsonObject), [name]: inner };
  return { ...schema, [keyword]: changed };
}

function refuse(flattening: Flattening, path: Path, message: string): JsonSchema {
  flattening.findings.push(errorAt(jsonPointer(path), 'VAL_BP_SCHEMA_REF', message));
  return true;
}

/** The copy of what a reference names, or undefined for a reference that remains. */
function target(
  flattening: Flattening,
  reference: string,
  path: Path,
  { root, open }: Origin,
): JsonSchema | undefined {
  const isLocal = reference.startsWith('#');
  if (isLocal && root === undefined) return undefined;
  const local = isLocal && root !== undefined ? resolveLocal(root, reference) : undefined;
  const found =
    local !== undefined && root !== undefined
      ? { root, schema: local }
      : resolveShared(flattening.shared, reference);
  if (found === undefined) {
    const message = `Reference ${JSON.stringify(reference.slice(0, 200))} names no schema of the blueprint`;
    return refuse(flattening, path, message);
  }
  if (open.includes(found.schema)) return refuse(flattening, path, 'The schema refers to itself');
  return flatten(flattening, found.schema, path, { root: found.root, open: [...open, found.schema] });
}

function flatten(flattening: Flattening, schema: unknown, path: Path, origin: Origin): JsonSchema {
  flattening.count += 1;
  if (flattening.count === MAX_SCHEMAS) refuse(flattening, path, 'The references become too many schemas');
  if (flattening.count >= MAX_SCHEMAS || !isJsonObject(schema)) return schema as JsonSchema;
  let flat: JsonObject = schema;
  for (const [step, inner] of innerSchemas(schema)) {
    const changed = flatten(flattening, inner, [...path, ...step], origin);
    if (changed !== inner) flat = withInner(flat, step, changed);
  }
  const reference = schema['$ref'];
  if (typeof reference !== 'string') return origin.root === undefined ? flat : withoutId(flat);
  const copy = target(flattening, reference, [...path, '$ref'], origin);
  if (copy === undefined) return flat;
  const { $ref: _, ...beside } = flat;
  const siblings = origin.root === undefined ? beside : withoutId(beside);
  if (Object.keys(siblings).length === 0) return copy;
  const others = siblings['allOf'];
  return { ...siblings, allOf: [...(Array.isArray(others) ? others : []), copy] };
}

/** A copy inside another schema has no identity of its own, and its references are copied, too. */
function withoutId({ $id: _, $schema: __, $defs: ___, ...rest }: JsonObject): JsonObject {
  return rest;
}

function sharedSchemas(blueprint: Blueprint, findings: Finding[]): SharedSchemas {
  const shared = new Map<string, JsonObject>();
  for (const [index, schema] of (blueprint.dataSchemas ?? []).entries()) {
    const id = isJsonObject(schema) ? schema['$id'] : undefined;
    if (!isJsonObject(schema) || typeof id !== 'string' || id === '' || id.includes('#')) continue;
    if (shared.has(id)) {
      findings.push(errorAt(`/dataSchemas/${index}/$id`, 'VAL_BP_004', 'Another schema has this $id, too'));
    }
    shared.set(id, schema);
  }
  return shared;
}

/**
 * Copies the shared schemas that the schemas of actions refer to into them, so that a publication needs no others.
 * References within a schema remain. Nothing is read from a network.
 */
export function flattenSchemas(blueprint: Blueprint): {
  readonly blueprint: Blueprint;
  readonly findings: readonly Finding[];
} {
  const findings: Finding[] = [];
  const flattening: Flattening = { shared: sharedSchemas(blueprint, findings), findings, count: 0 };
  const one = (schema: JsonSchema, path: Path) =>
    flatten(flattening, schema, path, { root: undefined, open: [] });
  const actions = blueprint.actions.map((action, index) => {
    const { dataSchemas, rejectionConfig } = action;
    const path = ['actions', index];
    const own = dataSchemas?.map((schema, at) => one(schema, [...path, 'dataSchemas', at]));
    const rejection = rejectionConfig?.rejectionSchema;
    return {
      ...action,
      ...(own !== undefined && { dataSchemas: own }),
      ...(rejectionConfig !== undefined &&
        rejection !== undefined && {
          rejectionConfig: {
            ...rejectionConfig,
            rejectionSchema: one(rejection, [...path, 'rejectionConfig', 'rejectionSchema']),
          },
        }),
    };
  });
  return { blueprint: { ...blueprint, actions }, findings };
}

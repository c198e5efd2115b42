import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { innerSchema } from '../json-schema.ts';
import { findNames } from '../model/pointers.ts';
import type { JsonSchema } from '../model/values.ts';

/** The text behind `#` as a JSON Pointer; undefined when it is malformed. */
function pointerOf(fragment: string): readonly string[] | undefined {
  try {
    return findNames(decodeURIComponent(fragment));
  } catch {
    // A malformed percent escape.
    return undefined;
  }
}

/** The schema at a pointer; undefined where there is none, also where there are data that only look like one. */
function schemaAt(root: unknown, names: readonly string[]): JsonSchema | undefined {
  if (names.length === 0) return typeof root === 'boolean' || isJsonObject(root) ? root : undefined;
  const found = innerSchema(root, names);
  return found === undefined ? undefined : schemaAt(found.inner, names.slice(found.names));
}

/** Resolves `#/...` within a schema; undefined for any other reference, and when there is no schema at that place. */
export function resolveLocal(root: JsonSchema, reference: unknown): JsonSchema | undefined {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return undefined;
  const names = pointerOf(reference.slice(1));
  return names === undefined ? undefined : schemaAt(root, names);
}

/** Schemas of a blueprint that the schemas of its actions may refer to, by `$id`. */
export type SharedSchemas = ReadonlyMap<string, JsonObject>;

/** Resolves a reference to a shared schema, or to a part of it. */
export function resolveShared(
  shared: SharedSchemas,
  reference: string,
): { readonly root: JsonObject; readonly schema: JsonSchema } | undefined {
  const [id = '', ...fragments] = reference.split('#');
  const root = shared.get(id);
  if (root === undefined) return undefined;
  const schema = resolveLocal(root, `#${fragments.join('#')}`);
  return schema === undefined ? undefined : { root, schema };
}

import { sha256Hex } from '../crypto/hash.ts';
import { canonicalJson } from '../encoding/jcs.ts';
import { isJsonObject, type JsonObject } from '../encoding/json.ts';
import { isAnnotation, isPresentation, stripSchema } from './json-schema.ts';
import { type BlueprintPart, type MemberKind, memberKind } from './members.ts';

const SEPARATOR = '\u001f';
const PUBLICATION_DOMAIN = 'platform:blueprint-publication:v1';
const EXEC_DOMAIN = 'platform:exec-def:v1';
const STRUCTURE_DOMAIN = 'platform:blueprint-structure:v1';
const INSTANCE_DOMAIN = 'platform:instance:v1';

/** Prefix of the members that name the source of a draft; a publication leaves them out. */
const LINEAGE = 'x-source-';

function pick(value: JsonObject, part: BlueprintPart, kinds: readonly MemberKind[]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).filter(([name]) => {
      // Unknown members count as structure, so that a change of one is visible.
      const kind = memberKind(part, name) ?? 'structure';
      return kinds.includes(kind);
    }),
  );
}

function withoutNulls(value: JsonObject): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

function each(value: unknown, change: (item: JsonObject) => unknown): unknown {
  if (!Array.isArray(value)) return value;
  return value.map((item) => (isJsonObject(item) ? change(item) : item));
}

function strip(schemas: unknown, isLeftOut: (keyword: string) => boolean): unknown {
  return Array.isArray(schemas) ? schemas.map((schema) => stripSchema(schema, isLeftOut)) : schemas;
}

/** The definition in its published form, without the members that services keep beside it. */
export function publishedForm(definition: JsonObject): JsonObject {
  const { metadata, ...rest } = pick(definition, 'blueprint', ['behaviour', 'structure', 'text']);
  if (!isJsonObject(metadata)) return metadata === undefined ? rest : { ...rest, metadata };
  const kept = Object.entries(metadata).filter(([name]) => !name.startsWith(LINEAGE));
  return kept.length === 0 ? rest : { ...rest, metadata: Object.fromEntries(kept) };
}

/** The members of a definition that decide how the workflow runs. */
function behaviouralForm(definition: JsonObject): JsonObject {
  const take = (value: JsonObject, part: BlueprintPart) => withoutNulls(pick(value, part, ['behaviour']));
  const { dataSchemas = [], participants, actions, ...rest } = take(definition, 'blueprint');
  return {
    ...rest,
    dataSchemas: strip(dataSchemas, isPresentation),
    participants: each(participants, (participant) => take(participant, 'participant')),
    actions: each(actions, (action) => {
      const { dataSchemas: own = [], routes = [], ...others } = take(action, 'action');
      return {
        ...others,
        dataSchemas: strip(own, isPresentation),
        routes: each(routes, (route) => take(route, 'route')),
      };
    }),
  };
}

/** The published definition without its texts. */
export function structuralForm(definition: JsonObject): JsonObject {
  const take = (value: JsonObject, part: BlueprintPart) => pick(value, part, ['behaviour', 'structure']);
  const given = take(publishedForm(definition), 'blueprint');
  const { dataSchemas, participants, actions } = given;
  return {
    ...given,
    ...(dataSchemas !== undefined && { dataSchemas: strip(dataSchemas, isAnnotation) }),
    participants: each(participants, (participant) => take(participant, 'participant')),
    actions: each(actions, (action) => {
      const taken = take(action, 'action');
      const { dataSchemas: own, routes } = taken;
      return {
        ...taken,
        ...(own !== undefined && { dataSchemas: strip(own, isAnnotation) }),
        ...(routes !== undefined && { routes: each(routes, (route) => take(route, 'route')) }),
      };
    }),
  };
}

/**
 * Id of a publication, which is the id of its transaction: SHA-256 of register, blueprint and published content,
 * lower-case hex. Throws like canonicalJson.
 */
export function publicationTxId(registerId: string, blueprintId: string, definition: JsonObject): string {
  const content = canonicalJson(publishedForm(definition));
  return sha256Hex([PUBLICATION_DOMAIN, registerId, blueprintId, content].join(SEPARATOR));
}

/** SHA-256 of the published form, lower-case hex. Throws like canonicalJson. */
export function contentHash(definition: JsonObject): string {
  return sha256Hex(canonicalJson(publishedForm(definition)));
}

/** Hash that changes when the workflow runs differently. Throws like canonicalJson. */
export function execDefHash(definition: JsonObject): string {
  return sha256Hex([EXEC_DOMAIN, canonicalJson(behaviouralForm(definition))].join(SEPARATOR));
}

/** Hash that changes when more than texts change. Throws like canonicalJson. */
export function structuralHash(definition: JsonObject): string {
  return sha256Hex([STRUCTURE_DOMAIN, canonicalJson(structuralForm(definition))].join(SEPARATOR));
}

/**
 * Id of an instance that follows from its first transaction: SHA-256 of register, blueprint and transaction, lower-case
 * hex.
 */
export function ledgerInstanceId(registerId: string, blueprintId: string, firstTxId: string): string {
  return sha256Hex([INSTANCE_DOMAIN, registerId, blueprintId, firstTxId].join(SEPARATOR));
}

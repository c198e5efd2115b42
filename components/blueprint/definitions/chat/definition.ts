import { MAX_BLUEPRINT_BYTES } from '#core/blueprint/members.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { refusal } from '../../errors.ts';
import { type DraftBody, draftBody } from '../drafts/schemas.ts';

/**
 * Parses a definition that a client or a provider gives, as the routes of drafts do.
 *
 * Errors: invalid/VAL_STRUCT_012 for what JSON cannot say, too_large/DEFINITION_TOO_LARGE, invalid/BLUEPRINT_INVALID.
 */
export function parseDefinition(value: JsonObject): DraftBody {
  if (Buffer.byteLength(canonicalJson(value)) > MAX_BLUEPRINT_BYTES) throw refusal('DEFINITION_TOO_LARGE');
  if (hasPrototypeMember(value)) {
    throw refusal('BLUEPRINT_INVALID', { message: 'the definition has a member that replaces a prototype' });
  }
  const parsed = draftBody.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const place = ['definition', ...(issue?.path ?? [])].join('.');
  throw refusal('BLUEPRINT_INVALID', { message: `${place}: ${issue?.message ?? 'malformed'}` });
}

/** Members that the JSON parser of the routes refuses, because programs that copy objects lose or obey them. */
function hasPrototypeMember(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasPrototypeMember);
  if (!isJsonObject(value)) return false;
  const names = Object.keys(value);
  if (names.includes('__proto__')) return true;
  const given = names.includes('constructor') ? value['constructor'] : undefined;
  if (isJsonObject(given) && Object.hasOwn(given, 'prototype')) return true;
  return Object.values(value).some(hasPrototypeMember);
}

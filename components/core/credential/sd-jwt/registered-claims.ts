import type { JsonObject } from '../../encoding/json.ts';

/** Claims that say nothing about the subject (draft-ietf-oauth-sd-jwt-vc section "Registered JWT Claims"). */
export const REGISTERED_CLAIMS: ReadonlySet<string> = new Set([
  'iss',
  'iat',
  'nbf',
  'exp',
  'cnf',
  'vct',
  'vct#integrity',
  'status',
]);

/** The claims about the subject. */
export function subjectClaims(claims: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !REGISTERED_CLAIMS.has(name)));
}

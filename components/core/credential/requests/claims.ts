import { canonicalJson } from '../../encoding/jcs.ts';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { type Violation, violation } from '../../errors/errors.ts';
import type { PresentationCode } from '../presentation.ts';
import type { ClaimPath, ClaimQuery, CredentialQuery } from './dcql.ts';

/** Elements that a step selects from one element; undefined when the element is not of the step's kind. */
function stepInto(element: unknown, step: ClaimPath[number]): readonly unknown[] | undefined {
  if (typeof step === 'string') {
    if (!isJsonObject(element)) return undefined;
    return Object.hasOwn(element, step) ? [element[step]] : [];
  }
  if (!Array.isArray(element)) return undefined;
  if (step === null) return element;
  return step < element.length ? [element[step]] : [];
}

/**
 * The values that a path selects in claims (OpenID4VP 1.0 section 7.1): nothing when the path leads to no value, or
 * through a value of another kind. For an mdoc, claims are elements by namespace.
 */
export function selectClaims(claims: JsonObject, path: ClaimPath): readonly unknown[] {
  let selected: readonly unknown[] = [claims];
  for (const step of path) {
    const next: unknown[] = [];
    for (const element of selected) {
      const found = stepInto(element, step);
      if (found === undefined) return [];
      for (const each of found) next.push(each);
    }
    selected = next;
  }
  return selected;
}

/** Whether a claim is one of some JSON values (RFC 8785). */
function isOneOf(values: readonly unknown[]): (claim: unknown) => boolean {
  const accepted = new Set(values.map(canonicalJson));
  return (claim) => accepted.has(canonicalJson(claim));
}

/** Whether two claims are the same JSON value (RFC 8785). */
export function equalClaims(left: unknown, right: unknown): boolean {
  return isOneOf([left])(right);
}

/** Refuses a claim; its path is the field, as a JSON Pointer. */
export function claimViolation(code: PresentationCode, message: string, path: ClaimPath): Violation {
  const field = path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
  return violation(code, message, field);
}

function judgeClaim(claims: JsonObject, { path, values }: ClaimQuery): readonly Violation[] {
  const selected = selectClaims(claims, path);
  if (selected.length === 0) return [claimViolation('CLAIM_MISSING', 'A requested claim is missing', path)];
  const fits = values === undefined || selected.some(isOneOf(values));
  return fits ? [] : [claimViolation('CLAIM_VALUE', 'A claim has another value', path)];
}

/**
 * Judges whether claims answer a query (OpenID4VP 1.0 section 6.4.1): all requested claims, or those of one claim set.
 * @returns CLAIM_MISSING and CLAIM_VALUE; with claim sets, those of the last one, which asks for the least
 */
export function judgeClaims(query: CredentialQuery, claims: JsonObject): readonly Violation[] {
  const { claims: requested = [], claim_sets: sets } = query;
  if (sets === undefined) return requested.flatMap((each) => judgeClaim(claims, each));
  // Each claim is judged once, however many sets name it.
  const judged = requested.map((each) => ({ id: each.id, violations: judgeClaim(claims, each) }));
  let found: readonly Violation[] = [];
  for (const set of sets) {
    const named = judged.filter(({ id }) => id !== undefined && set.includes(id));
    found = named.flatMap(({ violations }) => violations);
    if (found.length === 0) return [];
  }
  return found;
}

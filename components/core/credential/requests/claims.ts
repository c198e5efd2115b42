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
      // One by one: arguments of a call are on the stack, which a long array would fill.
      for (const each of found) next.push(each);
    }
    selected = next;
  }
  return selected;
}

/** The rest of the paths whose next step is one. */
function below(paths: readonly ClaimPath[], step: ClaimPath[number]): readonly ClaimPath[] {
  return paths.filter(([first]) => first === step).map((path) => path.slice(1));
}

function pick(value: unknown, paths: readonly ClaimPath[]): unknown {
  if (paths.some((path) => path.length === 0)) return value;
  const steps = new Set(paths.map(([step]) => step));
  if (Array.isArray(value)) {
    // Elements keep their places where a path names one by its place.
    if ([...steps].some((step) => typeof step === 'number' && step < value.length)) return value;
    const inEach = below(paths, null);
    const items = value.map((item) => pick(item, inEach)).filter((item) => item !== undefined);
    return items.length === 0 ? undefined : items;
  }
  if (!isJsonObject(value)) return undefined;
  const members = Object.entries(value)
    .filter(([name]) => steps.has(name))
    .map(([name, member]) => [name, pick(member, below(paths, name))] as const)
    .filter(([, member]) => member !== undefined);
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/**
 * The claims that paths select, in the objects and arrays where they are; nothing beside them. An array of which a path
 * selects one element is whole.
 */
export function pickClaims(claims: JsonObject, paths: readonly ClaimPath[]): JsonObject {
  const picked = pick(claims, paths);
  return isJsonObject(picked) ? picked : {};
}

/** Whether two claims are the same JSON value (RFC 8785). */
export function equalClaims(left: unknown, right: unknown): boolean {
  return canonicalJson(left) === canonicalJson(right);
}

/** Refuses a claim; its path is the field, as a JSON Pointer. */
export function claimViolation(code: PresentationCode, message: string, path: ClaimPath): Violation {
  const field = path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
  return violation(code, message, field);
}

function judgeClaim(claims: JsonObject, { path, values }: ClaimQuery): readonly Violation[] {
  const selected = selectClaims(claims, path);
  if (selected.length === 0) return [claimViolation('CLAIM_MISSING', 'A requested claim is missing', path)];
  if (values === undefined) return [];
  const accepted = new Set(values.map(canonicalJson));
  // Accepted values are texts, integers and booleans: no array or object is equal to one.
  const fits = selected.some((found) => typeof found !== 'object' && accepted.has(canonicalJson(found)));
  return fits ? [] : [claimViolation('CLAIM_VALUE', 'A claim has another value', path)];
}

interface ClaimAnswer {
  /** The claims that answer the query, or fail to. */
  readonly requested: readonly ClaimQuery[];
  /** CLAIM_MISSING and CLAIM_VALUE; empty when all of them are answered. */
  readonly violations: readonly Violation[];
}

/**
 * Answers a query from claims (OpenID4VP 1.0 section 6.4.1): all requested claims, or those of the first claim set that
 * is met. When none is, those of the last one, which asks for the least.
 */
export function answerClaims(query: CredentialQuery, claims: JsonObject): ClaimAnswer {
  const { claims: requested = [], claim_sets: sets } = query;
  // Each claim is judged once, however many sets name it.
  const judged = requested.map((each) => ({ each, violations: judgeClaim(claims, each) }));
  const answerOf = (some: typeof judged): ClaimAnswer => ({
    requested: some.map(({ each }) => each),
    violations: some.flatMap(({ violations }) => violations),
  });
  if (sets === undefined) return answerOf(judged);
  let last = answerOf([]);
  for (const set of sets) {
    const named = new Set(set);
    last = answerOf(judged.filter(({ each: { id } }) => id !== undefined && named.has(id)));
    if (last.violations.length === 0) break;
  }
  return last;
}

/** The violations of `answerClaims`. */
export function judgeClaims(query: CredentialQuery, claims: JsonObject): readonly Violation[] {
  return answerClaims(query, claims).violations;
}

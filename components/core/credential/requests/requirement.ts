import type { z } from 'zod';
import type { credentialRequirement } from '../../blueprint/model/credentials.ts';
import type { JsonObject } from '../../encoding/json.ts';
import { AppError, type Violation } from '../../errors/errors.ts';
import { claimViolation, equalClaims, selectClaims } from './claims.ts';
import { type ClaimPath, type DcqlQuery, parseDcqlQuery } from './dcql.ts';

/** A credential that an action asks for. */
export type CredentialRequirement = z.infer<typeof credentialRequirement>;
type RequestedClaim = NonNullable<CredentialRequirement['requiredClaims']>[number];

/** Requirements as a query. */
interface RequirementQuery {
  readonly query: DcqlQuery;
  /** The requirement of each query, by its id. */
  readonly requirements: ReadonlyMap<string, CredentialRequirement>;
}

function idOf(type: string, taken: ReadonlyMap<string, unknown>): string {
  const name =
    type
      .replaceAll(/[^A-Za-z0-9_-]/g, '-')
      .replaceAll(/^-+|-+$/g, '')
      .slice(0, 56) || 'credential';
  let id = name;
  for (let count = 2; taken.has(id); count += 1) id = `${name}-${count}`;
  return id;
}

/**
 * The path of a claim name. SD-JWT VC: `/a/b` is a JSON Pointer whose parts are member names, anything else is one name,
 * dots included. mdoc: `namespace/element`.
 */
function pathOf(format: CredentialRequirement['format'], claimName: string): [string, ...string[]] {
  if (format === 'mso_mdoc') {
    const at = claimName.lastIndexOf('/');
    if (at < 1 || at === claimName.length - 1) {
      throw new AppError('invalid', 'DCQL_INVALID', 'The name of an mdoc claim is namespace/element');
    }
    return [claimName.slice(0, at), claimName.slice(at + 1)];
  }
  if (!claimName.startsWith('/')) return [claimName];
  const [first = '', ...rest] = claimName
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  return [first, ...rest];
}

function isQueryValue(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value);
}

interface ClaimOptions {
  readonly format: CredentialRequirement['format'];
  /** Claims need ids where claim sets name them. */
  readonly id: string | undefined;
  readonly retained: ReadonlySet<string>;
}

function claimQuery(
  { claimName, expectedValue }: RequestedClaim,
  { format, id, retained }: ClaimOptions,
): JsonObject {
  return {
    ...(id === undefined ? {} : { id }),
    path: pathOf(format, claimName),
    ...(isQueryValue(expectedValue) ? { values: [expectedValue] } : {}),
    ...(format === 'mso_mdoc' ? { intent_to_retain: retained.has(claimName) } : {}),
  };
}

function credentialQuery(
  requirement: CredentialRequirement,
  id: string,
  retained: ReadonlySet<string>,
): JsonObject {
  const { type, format = 'sd-jwt-vc', requiredClaims = [], optionalClaims = [] } = requirement;
  const all = [...requiredClaims, ...optionalClaims];
  const hasSets = optionalClaims.length > 0;
  const idAt = (index: number): string | undefined => (hasSets ? `c${index}` : undefined);
  const claims = all.map((each, index) => claimQuery(each, { format, id: idAt(index), retained }));
  const ids = all.map((_, index) => `c${index}`);
  return {
    id,
    ...(format === 'mso_mdoc'
      ? { format: 'mso_mdoc', meta: { doctype_value: type } }
      : { format: 'dc+sd-jwt', meta: { vct_values: [type] } }),
    ...(claims.length === 0 ? {} : { claims }),
    ...(hasSets ? { claim_sets: [ids, ids.slice(0, requiredClaims.length)] } : {}),
  };
}

/** One set for each group, with its members as options, and one for each requirement outside of groups. */
function credentialSets(requirements: ReadonlyMap<string, CredentialRequirement>): JsonObject {
  const entries = [...requirements];
  if (entries.every(([, { anyOfGroup }]) => anyOfGroup === undefined)) return {};
  const groups = Map.groupBy(entries, ([id, { anyOfGroup }]) =>
    anyOfGroup === undefined ? `id ${id}` : `group ${anyOfGroup}`,
  );
  const sets = [...groups.values()].map((members) => {
    const purpose = members.find(([, { description }]) => description !== undefined)?.[1].description;
    return {
      options: members.map(([id]) => [id]),
      required: true,
      ...(purpose === undefined ? {} : { purpose }),
    };
  });
  return { credential_sets: sets };
}

/**
 * Writes the requirements of an action as a DCQL query: one query each, alternatives as credential sets, optional claims
 * as the first of two claim sets. Expected values that DCQL cannot name are judged by `judgeRequirement` alone.
 * @param retained claim names whose values the workflow stores, for mdoc's `intent_to_retain`
 * @throws AppError invalid DCQL_INVALID when there are no requirements, or one cannot be written as a query
 */
export function buildRequirementQuery(
  requirements: readonly CredentialRequirement[],
  retained: ReadonlySet<string> = new Set(),
): RequirementQuery {
  const byId = new Map<string, CredentialRequirement>();
  for (const requirement of requirements) byId.set(idOf(requirement.type, byId), requirement);
  const credentials = [...byId].map(([id, requirement]) => credentialQuery(requirement, id, retained));
  return { query: parseDcqlQuery({ credentials, ...credentialSets(byId) }), requirements: byId };
}

function judgeRequested(
  claims: JsonObject,
  path: ClaimPath,
  { expectedValue }: RequestedClaim,
  isRequired: boolean,
): readonly Violation[] {
  const [found, ...more] = selectClaims(claims, path);
  if (found === undefined) {
    return isRequired ? [claimViolation('CLAIM_MISSING', 'A required claim is missing', path)] : [];
  }
  if (expectedValue === undefined || (more.length === 0 && equalClaims(found, expectedValue))) return [];
  return [claimViolation('CLAIM_VALUE', 'A claim has another value', path)];
}

/**
 * Judges verified claims against a requirement: every required claim is present, and every expected value is the value,
 * as canonical JSON; an optional claim may be missing, not different.
 */
export function judgeRequirement(
  requirement: CredentialRequirement,
  claims: JsonObject,
): readonly Violation[] {
  const { format, requiredClaims = [], optionalClaims = [] } = requirement;
  const judgeEach = (each: RequestedClaim, isRequired: boolean) =>
    judgeRequested(claims, pathOf(format, each.claimName), each, isRequired);
  return [
    ...requiredClaims.flatMap((each) => judgeEach(each, true)),
    ...optionalClaims.flatMap((each) => judgeEach(each, false)),
  ];
}

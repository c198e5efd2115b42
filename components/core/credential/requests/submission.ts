import { isJsonObject, scanJson, toValue } from '../../encoding/json.ts';
import { AppError, isAppError } from '../../errors/errors.ts';
import type { CredentialQuery, DcqlQuery } from './dcql.ts';

/** Presentations of one query. */
interface QueryPresentations {
  readonly query: CredentialQuery;
  readonly presentations: readonly [string, ...string[]];
}

/** Most presentations of one query that allows several. */
const MAX_PRESENTATIONS = 16;

function refuse(code: 'DCQL_INVALID' | 'DCQL_UNKNOWN_QUERY_ID' | 'LEGACY_DIALECT', message: string): never {
  throw new AppError('invalid', code, message);
}

function jsonOf(text: string): unknown {
  try {
    return toValue(scanJson(text));
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    // The first character distinguishes a presentation from a malformed object.
    if (!text.trimStart().startsWith('{')) refuse('LEGACY_DIALECT', 'The vp_token is an object by query id');
    return refuse('DCQL_INVALID', 'The vp_token is no valid JSON');
  }
}

function presentationsOf(query: CredentialQuery, value: unknown): readonly [string, ...string[]] {
  if (!Array.isArray(value)) refuse('DCQL_INVALID', `The presentations of ${query.id} are no array`);
  const texts = value.filter((each) => typeof each === 'string' && each !== '');
  const [first, ...rest] = texts;
  if (first === undefined || texts.length !== value.length) {
    refuse('DCQL_INVALID', `A presentation of ${query.id} is empty or no text`);
  }
  const most = query.multiple === true ? MAX_PRESENTATIONS : 1;
  if (texts.length > most) refuse('DCQL_INVALID', `There are more than ${most} presentations of ${query.id}`);
  return [first, ...rest];
}

/**
 * Reads a `vp_token` (OpenID4VP 1.0 section 8.1): an object by query id of arrays of presentations.
 * @param text JSON text, or the member of a decrypted response as JSON text
 * @returns the presentations in the order of the query
 * @throws AppError invalid LEGACY_DIALECT for a presentation that is not in an object, DCQL_UNKNOWN_QUERY_ID,
 * DCQL_INVALID for anything else that is malformed, empty, or more presentations than the query allows
 */
export function parseVpToken(query: DcqlQuery, text: string): readonly QueryPresentations[] {
  const token = jsonOf(text);
  if (typeof token === 'string' || Array.isArray(token)) {
    refuse('LEGACY_DIALECT', 'The vp_token is an object by query id');
  }
  if (!isJsonObject(token)) refuse('DCQL_INVALID', 'The vp_token is no object');
  const known = new Set(query.credentials.map(({ id }) => id));
  const ids = Object.keys(token);
  if (ids.length === 0) refuse('DCQL_INVALID', 'The vp_token is empty');
  if (ids.some((id) => !known.has(id)))
    refuse('DCQL_UNKNOWN_QUERY_ID', 'The vp_token names an unknown query');
  return query.credentials
    .filter(({ id }) => Object.hasOwn(token, id))
    .map((each) => ({ query: each, presentations: presentationsOf(each, token[each.id]) }));
}

/**
 * Whether verified presentations satisfy a query (OpenID4VP 1.0 section 6.4.2): with credential sets, each required set
 * has an option whose queries are all verified; without, all queries are. Nothing verified satisfies no query, even when
 * every set is optional.
 * @param verified ids of the queries all of whose presentations verified
 */
export function isSatisfied(
  { credentials, credential_sets: sets }: DcqlQuery,
  verified: ReadonlySet<string>,
): boolean {
  if (!credentials.some(({ id }) => verified.has(id))) return false;
  if (sets === undefined) return credentials.every(({ id }) => verified.has(id));
  return sets.every(
    ({ options, required = true }) =>
      !required || options.some((option) => option.every((id) => verified.has(id))),
  );
}

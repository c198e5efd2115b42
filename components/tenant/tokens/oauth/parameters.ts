import { decodeBase64Any } from '#core/encoding/base64.ts';
import { fromUtf8 } from '#core/encoding/text.ts';
import { isAppError } from '#core/errors/errors.ts';
import { type FormParameters, parseForm as readForm } from '#kit/http/http.ts';
import { OAuthError } from './oauth.ts';

/** Parameters of a token request. */
export type Parameters = FormParameters;

/** Form parameters. @throws OAuthError invalid_request for a repeated parameter */
export function parseForm(text: string): Parameters {
  try {
    return readForm(text);
  } catch (error) {
    if (isAppError(error, 'invalid')) throw invalid(error.message);
    throw error;
  }
}

/** Optional parameters that change what is granted; a value of another type must not count as omitted. */
const decisive: readonly string[] = ['tier', 'organization_subdomain', 'scope'];

/**
 * Parameters from the members of a JSON object, also in camelCase; members that are not strings are ignored.
 * @throws OAuthError invalid_request for a decisive parameter that is neither a string nor null
 */
export function parametersOfJson(body: unknown): Parameters {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalid('the body is not a JSON object');
  const parameters = new Map<string, string>();
  for (const [member, value] of Object.entries(body)) {
    const name = member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (parameters.has(name)) throw invalid(`parameter ${quoted(name)} is repeated`);
    if (typeof value === 'string' && value !== '') parameters.set(name, storable(value));
    const isPresent = typeof value !== 'string' && value !== null;
    if (isPresent && decisive.includes(name)) throw invalid(`parameter ${name} is not a string`);
  }
  return parameters;
}

/** @throws OAuthError invalid_request when the parameter is missing */
export function getParameter(parameters: Parameters, name: string): string {
  const value = parameters.get(name);
  if (value === undefined) throw invalid(`parameter ${name} is missing`);
  return value;
}

/** Client id and secret from the body or from HTTP Basic (RFC 6749, section 2.3.1), not both. */
export function parseClient(
  parameters: Parameters,
  authorization: string | undefined,
): { readonly clientId: string; readonly secret: string | undefined } {
  const basic = /^basic +(.*)$/i.exec(authorization ?? '')?.[1];
  if (basic === undefined) {
    return { clientId: getParameter(parameters, 'client_id'), secret: parameters.get('client_secret') };
  }
  if (parameters.has('client_secret')) throw invalid('two client credentials are present');
  const [clientId = '', ...rest] = credentialsOf(basic).split(':');
  const named = parameters.get('client_id');
  const id = formDecoded(clientId);
  if (named !== undefined && named !== id) throw invalid('client_id contradicts the authorization header');
  const secret = formDecoded(rest.join(':'));
  return { clientId: id, secret: secret === '' ? undefined : secret };
}

function credentialsOf(basic: string): string {
  try {
    const text = fromUtf8(decodeBase64Any(basic));
    if (text !== undefined) return text;
  } catch (error) {
    if (!isAppError(error)) throw error;
  }
  throw malformedHeader();
}

function malformedHeader(): OAuthError {
  return invalid('the authorization header is malformed');
}

function formDecoded(text: string): string {
  try {
    return storable(decodeURIComponent(text.replaceAll('+', ' ')));
  } catch {
    throw malformedHeader();
  }
}

/** NUL is not allowed in names, secrets or tokens (RFC 6749, appendix A), and PostgreSQL cannot search for it. */
function storable(text: string): string {
  if (text.includes('\0')) throw invalid('a parameter contains a character that is not allowed');
  return text;
}

/** The requested scopes, which must all be allowed; all allowed scopes when none is requested. */
export function grantScopes(requested: string | undefined, allowed: readonly string[]): readonly string[] {
  if (requested === undefined) return allowed;
  const scopes = [...new Set(requested.split(' ').filter((scope) => scope !== ''))];
  if (scopes.length === 0 || !scopes.every((scope) => allowed.includes(scope))) {
    throw new OAuthError(400, 'invalid_scope', 'a requested scope is not granted to the client');
  }
  return scopes;
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 64));
}

function invalid(description: string): OAuthError {
  return new OAuthError(400, 'invalid_request', description);
}

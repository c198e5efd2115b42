import { type CompactJws, findCompactJws, findEncodedJson } from '../credential/jws.ts';
import { CLOCK_LEEWAY_SECONDS } from '../credential/presentation.ts';
import { sha256 } from '../crypto/hash.ts';
import { verifyJose } from '../crypto/signature-key.ts';
import { encodeBase64Url } from '../encoding/base64.ts';
import { derContent } from '../encoding/der.ts';
import { isJsonObject, type JsonObject } from '../encoding/json.ts';
import { AppError, violation } from '../errors/errors.ts';
import { type Judgement, judge } from '../errors/judgement.ts';
import type { Certificate } from './certificate.ts';
import { subjectAltNames } from './extensions.ts';
import { judgeX5c } from './x5c.ts';

type RequestCode = 'REQUEST_OBJECT_INVALID' | 'REQUEST_HOST_MISMATCH';

/** What a wallet knows about the request that it received. */
export interface RequestExpectation {
  /** The `client_id` beside the request, as in the URI that was scanned; undefined when there was none. */
  readonly clientId: string | undefined;
  /** The nonce that the wallet sent; undefined when it sent none. */
  readonly walletNonce: string | undefined;
  /** Where the request was fetched; undefined when it came by itself. */
  readonly requestUri: string | undefined;
  /** Whether answers may go over plain HTTP, in development. */
  readonly allowsHttp: boolean;
  /** Time of the judgement, in milliseconds since the epoch. */
  readonly atMs: number;
}

/** A request for presentations (OpenID4VP 1.0 section 5), judged in all but its query and the trust in its certificate. */
export interface VerifierRequest {
  readonly clientId: string;
  /** The host that answers go to, in lower case. */
  readonly host: string;
  readonly responseUri: string;
  readonly responseMode: 'direct_post' | 'direct_post.jwt';
  readonly nonce: string;
  readonly state: string | undefined;
  readonly dcqlQuery: unknown;
  /**
   * The certificates of the verifier, leaf first, whose key signed the request and whose name is the client id; undefined
   * when the request is not signed, or its client id is of a kind that cannot be verified.
   */
  readonly path: readonly Certificate[] | undefined;
}

const TYPE = 'oauth-authz-req+jwt';
/** Audience of requests to wallets without metadata (OpenID4VP 1.0 section 5.8). */
const AUDIENCE = 'https://self-issued.me/v2';
const DNS_NAME = 0x82;
/** Members of requests that change what is asked, and are not understood here. */
const UNSUPPORTED = ['presentation_definition', 'presentation_definition_uri', 'scope', 'transaction_data'];
const PRINTABLE = /^[\x20-\x7e]*$/;
/** What RFC 3986 allows in a URI. */
const URI_TEXT = /^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]*$/;
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

function refuse(code: RequestCode, message: string, field?: string): never {
  throw new AppError('unprocessable', code, message, { violations: [violation(code, message, field)] });
}

function refuseObject(message: string, field?: string): never {
  return refuse('REQUEST_OBJECT_INVALID', message, field);
}

function textOf(payload: JsonObject, name: string): string {
  const value = payload[name];
  return typeof value === 'string' && value !== '' ? value : refuseObject(`${name} is no text`, name);
}

/** Refuses a value that people are shown, or that is sent on, unless it is printable ASCII (RFC 6749 appendix A). */
function printable(name: string, value: string): string {
  return PRINTABLE.test(value) ? value : refuseObject(`${name} has a character that is not allowed`, name);
}

function timeOf(payload: JsonObject, name: string): number | undefined {
  const value = payload[name];
  if (value === undefined) return undefined;
  return typeof value === 'number' && Number.isFinite(value)
    ? value * 1000
    : refuseObject(`${name} is no time`, name);
}

/** A request without a signature (`alg` none), as far as its payload. */
function findUnsigned(
  text: string,
): { readonly header: JsonObject; readonly payload: JsonObject } | undefined {
  const parts = text.split('.', 4);
  const [first = '', second = '', signature] = parts;
  if (parts.length !== 3 || signature !== '') return undefined;
  const [header, payload] = [first, second].map((part) => findEncodedJson(part)?.value);
  return isJsonObject(header) && isJsonObject(payload) && header['alg'] === 'none'
    ? { header, payload }
    : undefined;
}

/** The certificates whose leaf key signed the request. */
function verifiedPath(jws: CompactJws): readonly Certificate[] {
  const { result } = judgeX5c(jws.header['x5c']);
  const key = result?.[0]?.key;
  if (result === undefined || key === undefined) refuseObject('x5c is missing or cannot be read', 'x5c');
  if (jws.header['alg'] !== 'ES256') refuseObject('The request is not signed with ES256', 'alg');
  if (!verifyJose('ES256', key, jws.signed, jws.signature)) refuseObject('The signature is not valid');
  return result;
}

function dnsNames(leaf: Certificate): readonly string[] {
  return subjectAltNames(leaf)
    .filter(({ tag }) => tag === DNS_NAME)
    .map((name) => Buffer.from(derContent(name)).toString('latin1').toLowerCase());
}

/** Judges that the leaf has the name of the client id, and that answers go to a host of the leaf. */
function judgeName(clientId: string, host: string, [leaf]: readonly Certificate[]): void {
  if (leaf === undefined) refuseObject('x5c is missing', 'x5c');
  const names = dnsNames(leaf);
  const [prefix = '', name = ''] = splitClientId(clientId);
  if (prefix === 'x509_hash') {
    if (name !== encodeBase64Url(sha256(leaf.der)))
      refuseObject('The client id is the hash of another certificate', 'client_id');
    // A certificate without names of hosts says nothing about where answers go.
    if (names.length > 0 && !names.includes(host))
      refuse(
        'REQUEST_HOST_MISMATCH',
        'Answers go to a host that the certificate does not name',
        'response_uri',
      );
    return;
  }
  const wanted = name.toLowerCase();
  if (!names.includes(wanted))
    refuse('REQUEST_HOST_MISMATCH', 'The certificate does not name the host of the client id', 'client_id');
  if (host !== wanted)
    refuse('REQUEST_HOST_MISMATCH', 'Answers go to another host than the client id names', 'response_uri');
}

function splitClientId(clientId: string): readonly [string, string] {
  const at = clientId.indexOf(':');
  return at === -1 ? ['', clientId] : [clientId.slice(0, at), clientId.slice(at + 1)];
}

function judgeAddress(responseUri: string, allowsHttp: boolean): string {
  const url = URL.parse(responseUri);
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '')
    refuseObject('response_uri is no address', 'response_uri');
  // Readers of addresses differ in tabs, backslashes and other spellings of a host: answers go to the host that was judged.
  if (!URI_TEXT.test(responseUri) || !responseUri.toLowerCase().startsWith(url.origin))
    refuseObject('response_uri is not written as an address', 'response_uri');
  const isPlain = url.protocol === 'http:' && allowsHttp && LOOPBACK.includes(url.hostname);
  if (url.protocol !== 'https:' && !isPlain) refuseObject('response_uri is not https', 'response_uri');
  return url.hostname.toLowerCase();
}

function judgeTimes(payload: JsonObject, atMs: number): void {
  const leewayMs = CLOCK_LEEWAY_SECONDS * 1000;
  const [issuedMs, notBeforeMs, expiresMs] = ['iat', 'nbf', 'exp'].map((name) => timeOf(payload, name));
  if (Math.max(issuedMs ?? 0, notBeforeMs ?? 0) > atMs + leewayMs)
    refuseObject('The request is of the future', 'iat');
  if (expiresMs !== undefined && expiresMs + leewayMs <= atMs) refuseObject('The request has expired', 'exp');
}

/** Verifiers of some makers name the address that they serve the request at, in place of the wallet. */
function isAudience(aud: unknown, requestUri: string | undefined): boolean {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  return (
    aud === undefined || named.includes(AUDIENCE) || (requestUri !== undefined && named.includes(requestUri))
  );
}

function readTerms(payload: JsonObject, { walletNonce, requestUri, allowsHttp, atMs }: RequestExpectation) {
  for (const name of UNSUPPORTED)
    if (Object.hasOwn(payload, name)) refuseObject(`${name} is not supported`, name);
  if (payload['response_type'] !== 'vp_token') refuseObject('response_type is not vp_token', 'response_type');
  const { response_mode: mode, aud, state, dcql_query: dcqlQuery } = payload;
  if (mode !== 'direct_post' && mode !== 'direct_post.jwt')
    refuseObject('response_mode is not direct_post or direct_post.jwt', 'response_mode');
  if (Object.hasOwn(payload, 'redirect_uri')) refuseObject('redirect_uri has no place here', 'redirect_uri');
  if (!isAudience(aud, requestUri)) refuseObject('The request is for another audience', 'aud');
  if (walletNonce !== undefined && payload['wallet_nonce'] !== walletNonce)
    refuseObject('The request does not repeat the nonce of the wallet', 'wallet_nonce');
  if (state !== undefined && typeof state !== 'string') refuseObject('state is no text', 'state');
  if (dcqlQuery === undefined) refuseObject('There is no dcql_query', 'dcql_query');
  judgeTimes(payload, atMs);
  const responseUri = textOf(payload, 'response_uri');
  return {
    clientId: printable('client_id', textOf(payload, 'client_id')),
    host: judgeAddress(responseUri, allowsHttp),
    responseUri,
    responseMode: mode,
    nonce: printable('nonce', textOf(payload, 'nonce')),
    state: state === undefined ? undefined : printable('state', state),
    dcqlQuery,
  } as const;
}

/** The certificates behind the client id; undefined where its kind has none that can be verified. */
function certifiedPath(
  { clientId, host, responseUri }: Pick<VerifierRequest, 'clientId' | 'host' | 'responseUri'>,
  jws: CompactJws | undefined,
): readonly Certificate[] | undefined {
  const [prefix, name] = splitClientId(clientId);
  if (prefix === 'redirect_uri' && name !== responseUri)
    refuseObject('Answers go to another address than the client id', 'response_uri');
  if (prefix !== 'x509_san_dns' && prefix !== 'x509_hash') return undefined;
  // A certified client id on a request without a signature would let anyone ask in that name.
  if (jws === undefined) refuseObject('The request is not signed');
  const path = verifiedPath(jws);
  judgeName(clientId, host, path);
  return path;
}

/**
 * Judges a request object before a wallet answers it (RFC 9101; OpenID4VP 1.0 sections 5.2 to 5.10): type, signature by
 * the leaf of `x5c`, client id, where answers go, times, and that nothing is asked that is not understood. Certificates
 * stand for client ids of `x509_san_dns` and `x509_hash`; other requests are read and have no `path`. Whether the
 * certificate is trusted is judged elsewhere. Stops at the first violation: REQUEST_OBJECT_INVALID, or
 * REQUEST_HOST_MISMATCH where names do not fit.
 * @param text compact JWS, at most 64 KiB
 */
export function judgeRequestObject(text: string, expected: RequestExpectation): Judgement<VerifierRequest> {
  return judge(() => {
    const jws = findCompactJws(text);
    const object = jws ?? findUnsigned(text);
    if (object === undefined) refuseObject('The request object is no JWT');
    if (object.header['typ'] !== TYPE) refuseObject(`typ is not ${TYPE}`, 'typ');
    const terms = readTerms(object.payload, expected);
    if (expected.clientId !== undefined && expected.clientId !== terms.clientId)
      refuseObject('The client id is another one than the request was offered with', 'client_id');
    return { ...terms, path: certifiedPath(terms, jws) };
  });
}

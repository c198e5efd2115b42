import { randomBytes } from 'node:crypto';
import { type DcqlQuery, parseDcqlQuery } from '#core/credential/requests/dcql.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Certificate } from '#core/trust/certificate.ts';
import { EXTENSION } from '#core/trust/extensions.ts';
import { validatePath } from '#core/trust/path.ts';
import { judgeRequestObject, type VerifierRequest } from '#core/trust/request-object.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Outbound, OutboundError } from '#kit/outbound/outbound.ts';
import { refusal } from '../errors.ts';
import { type ReadObjectDeps, readRequestObject } from '../verifier/requests/read-object.ts';
import type { RevocationLists } from '../verifier/trust-sources/revocation-lists.ts';
import type { TrustSources } from '../verifier/trust-sources/trust-sources.ts';

export interface ResolveRequestDeps extends ReadObjectDeps {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, 'send'>;
  readonly sources: Pick<TrustSources, 'findListedIssuers'>;
  readonly revocations: Pick<RevocationLists, 'verdictOf'>;
  /** Authorities of verifiers that the settings name. */
  readonly verifierAuthorities: readonly Certificate[];
}

/** How a request came to a wallet. */
interface RequestSource {
  /** An https address, or the URI of a request of any scheme; undefined when the object itself came. */
  readonly requestUri?: string | undefined;
  /** Compact JWS. */
  readonly requestObject?: string | undefined;
  /** The client id beside it. */
  readonly clientId?: string | undefined;
}

/** Whether a wallet may believe who asks. */
type VerifierAuth =
  /** The certificate leads to an anchor of a list, `{id}#{sequence}`, or of the settings, `configured`. */
  | { readonly state: 'TrustedListVerified'; readonly anchorSetId: string }
  /** The request is the certificate's, which leads to no anchor, or is revoked, or its list cannot be had. */
  | { readonly state: 'AuthenticUntrusted'; readonly reason: string }
  /** Nothing proves who asks. */
  | { readonly state: 'Unverifiable'; readonly reason: string };

/** A request as a person's wallet shows it before it answers. */
interface ResolvedRequest extends Omit<VerifierRequest, 'path' | 'dcqlQuery'> {
  readonly query: DcqlQuery;
  readonly auth: VerifierAuth;
}

const limits = { timeoutMs: 10_000, maxBytes: 65_536 };
const ownPath =
  /^\/api\/v1\/verifier\/requests\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/request-object$/i;

/**
 * Fetches and judges a request for presentations (OpenID4VP 1.0 section 5). An authority that is not trusted never
 * refuses it; the answer says so.
 * @throws AppError unprocessable REQUEST_OBJECT_INVALID, REQUEST_HOST_MISMATCH, REQUEST_UNREACHABLE; invalid
 * DCQL_INVALID; unavailable CERTIFICATES_UNAVAILABLE
 */
export async function resolveRequest(
  deps: ResolveRequestDeps,
  source: RequestSource,
): Promise<ResolvedRequest> {
  const { text, clientId, walletNonce, requestUri } = await obtain(deps, source);
  const { violations, result } = judgeRequestObject(text, {
    clientId,
    walletNonce,
    requestUri,
    allowsHttp: new URL(deps.issuerUrl).protocol === 'http:',
    atMs: deps.clock.nowMs(),
  });
  if (result === undefined) {
    const [{ code, message }] = violations;
    throw refusal(code === 'REQUEST_HOST_MISMATCH' ? code : 'REQUEST_OBJECT_INVALID', { message });
  }
  const { path, dcqlQuery, ...terms } = result;
  return { ...terms, query: parseDcqlQuery(dcqlQuery), auth: await authOf(deps, path) };
}

interface ObtainedObject {
  readonly text: string;
  readonly clientId: string | undefined;
  readonly walletNonce?: string;
  readonly requestUri?: string;
}

async function obtain(deps: ResolveRequestDeps, source: RequestSource): Promise<ObtainedObject> {
  const { requestUri, requestObject } = source;
  if (requestObject !== undefined) return { text: requestObject, clientId: source.clientId };
  const url = URL.parse(requestUri ?? '');
  if (url === null) throw refusal('REQUEST_OBJECT_INVALID', { message: 'The address cannot be read' });
  if (url.protocol === 'https:' || url.protocol === 'http:')
    return { text: await fetchObject(deps, url, undefined), clientId: source.clientId, requestUri: url.href };
  const clientId = oneClientId(source.clientId, url.searchParams);
  const given = url.searchParams.get('request');
  if (given !== null) return { text: given, clientId };
  const address = URL.parse(url.searchParams.get('request_uri') ?? '');
  if (address === null)
    throw refusal('REQUEST_OBJECT_INVALID', { message: 'The URI has neither request_uri nor request' });
  if (url.searchParams.get('request_uri_method') !== 'post')
    return { text: await fetchObject(deps, address, undefined), clientId, requestUri: address.href };
  const walletNonce = encodeBase64Url(randomBytes(24));
  const text = await fetchObject(deps, address, walletNonce);
  return { text, clientId, walletNonce, requestUri: address.href };
}

/** The client id beside a request, which the URI and the caller may both give. */
function oneClientId(given: string | undefined, parameters: URLSearchParams): string | undefined {
  const all = [...new Set([...(given === undefined ? [] : [given]), ...parameters.getAll('client_id')])];
  if (all.length > 1)
    throw refusal('REQUEST_OBJECT_INVALID', { message: 'The request is offered with two client ids' });
  return all[0];
}

/** A request of this installation is read where it is stored: its public address may lead nowhere from here. */
async function fetchObject(
  deps: ResolveRequestDeps,
  url: URL,
  walletNonce: string | undefined,
): Promise<string> {
  const own = url.href.startsWith(`${deps.issuerUrl}/`)
    ? ownPath.exec(url.href.slice(deps.issuerUrl.length))?.[1]
    : undefined;
  if (own !== undefined) return readOwn(deps, own, walletNonce);
  const accept = { accept: 'application/oauth-authz-req+jwt' };
  const post = { 'content-type': 'application/x-www-form-urlencoded' };
  try {
    const { status, body } = await deps.outbound.send(
      url.href,
      walletNonce === undefined
        ? { headers: accept, limits }
        : {
            method: 'POST',
            headers: { ...accept, ...post },
            body: new URLSearchParams({ wallet_nonce: walletNonce }).toString(),
            limits,
          },
    );
    if (status === 200) return body.toString('utf8').trim();
    throw refusal('REQUEST_UNREACHABLE', { message: `the verifier answered with status ${status}` });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    throw refusal('REQUEST_UNREACHABLE', { cause: error, message: error.message });
  }
}

async function readOwn(deps: ReadObjectDeps, id: string, walletNonce: string | undefined): Promise<string> {
  try {
    return await readRequestObject(deps, id, walletNonce);
  } catch (cause) {
    if (!isAppError(cause, 'not_found') && !isAppError(cause, 'gone')) throw cause;
    throw refusal('REQUEST_UNREACHABLE', { cause, message: cause.message });
  }
}

async function authOf(
  { clock, sources, revocations, verifierAuthorities }: ResolveRequestDeps,
  path: readonly Certificate[] | undefined,
): Promise<VerifierAuth> {
  const last = path?.at(-1);
  if (path === undefined || last === undefined)
    return { state: 'Unverifiable', reason: 'REQUEST_NOT_CERTIFIED' };
  const atMs = clock.nowMs();
  let reason = await refusalOf(revocations, { path, anchors: verifierAuthorities, atMs });
  if (reason === undefined) return { state: 'TrustedListVerified', anchorSetId: 'configured' };
  for (const { trustListId, sequenceNumber, anchors } of await sources.findListedIssuers(last)) {
    reason = await refusalOf(revocations, { path, anchors, atMs });
    if (reason === undefined)
      return { state: 'TrustedListVerified', anchorSetId: `${trustListId}#${sequenceNumber}` };
  }
  return { state: 'AuthenticUntrusted', reason };
}

/** Why a path proves nothing: it leads to none of the anchors, or a certificate of it is revoked, or may be. */
async function refusalOf(
  revocations: ResolveRequestDeps['revocations'],
  input: Parameters<typeof validatePath>[0],
): Promise<string | undefined> {
  const { violations, result } = validatePath(input);
  if (result === undefined) return violations[0].code;
  const { path } = input;
  // Only authorities of a valid path name addresses that are asked.
  const verdicts = await Promise.all(
    path.map(async (certificate, at) =>
      certificate.extensions.has(EXTENSION.crlDistributionPoints)
        ? revocations.verdictOf(certificate, path[at + 1] ?? result.anchor)
        : 'Good',
    ),
  );
  if (verdicts.includes('Revoked')) return 'TRUST_CERT_REVOKED';
  return verdicts.includes('Unavailable') ? 'TRUST_CRL_UNAVAILABLE' : undefined;
}

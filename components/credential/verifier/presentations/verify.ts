import { judgeMdocForm } from '#core/credential/mdoc/parse.ts';
import { DOCUMENT_SIGNER, verifyMdoc } from '#core/credential/mdoc/verify.ts';
import { judgeClaims, pickClaims } from '#core/credential/requests/claims.ts';
import type { CredentialQuery } from '#core/credential/requests/dcql.ts';
import { judgeRequirement } from '#core/credential/requests/requirement.ts';
import { subjectClaims } from '#core/credential/sd-jwt/registered-claims.ts';
import { judgeSdJwtForm, verifySdJwtVc } from '#core/credential/sd-jwt/verify.ts';
import type { StatusReference } from '#core/credential/status-list/reference.ts';
import { jwkThumbprint } from '#core/crypto/signature-key.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { type Violation, violation } from '#core/errors/errors.ts';
import { isOfAuthority } from '#core/trust/authorities.ts';
import { decideTrust, type TrustDecision } from '#core/trust/evaluate.ts';
import type { StoredRequest } from '../requests/store.ts';
import type { RevocationLists } from '../trust-sources/revocation-lists.ts';
import type { TrustSources } from '../trust-sources/trust-sources.ts';
import { type FoundIssuer, findCertifiedIssuer, findIssuer, gatherFacts } from './issuer.ts';
import type { StatusReader } from './status.ts';
import type { JudgedQuery, QueryVerdict, StatusResult } from './verdict.ts';

export interface VerifyDeps {
  readonly sources: TrustSources;
  readonly revocations: Pick<RevocationLists, 'verdictOf'>;
  readonly statuses: StatusReader;
}

interface Judging {
  readonly request: StoredRequest;
  readonly query: CredentialQuery;
  readonly nowMs: number;
  /** Where the request says to answer. */
  readonly responseUri: string;
}

const nothing: Omit<QueryVerdict, 'errors'> = {
  isValid: false,
  issuer: null,
  holderKeyVerified: false,
  x5cChainValid: false,
  statusCheckResult: 'NotPresent',
  trust: undefined,
};

/** Verifies one presentation in all its parts; every finding is part of the verdict, none is thrown. */
export async function verifyPresentation(
  deps: VerifyDeps,
  presentation: string,
  judging: Judging,
): Promise<JudgedQuery> {
  const found =
    judging.query.format === 'mso_mdoc'
      ? verifyDocument(presentation, judging, judging.query)
      : await verifySdJwt(deps, presentation, { ...judging, types: judging.query.meta.vct_values });
  return 'code' in found ? failed(found) : judgeVerified(deps, found, judging);
}

async function verifySdJwt(
  deps: VerifyDeps,
  presentation: string,
  { request, nowMs, types }: Judging & { readonly types: readonly string[] },
): Promise<Verified | Violation> {
  const form = judgeSdJwtForm(presentation);
  if (form.result === undefined) return form.violations[0];
  const issuer = await findIssuer(form.result.issuerJwt.header, deps.sources);
  if ('code' in issuer) return issuer;
  const { result, violations } = verifySdJwtVc(form.result, {
    issuerKey: issuer.key,
    algorithms: ['ES256'],
    types,
    keyBinding: { nonce: request.nonce, audience: request.clientId, algorithms: ['ES256', 'EdDSA'] },
    atMs: nowMs,
  });
  if (result === undefined) return violations[0];
  return { issuer, issuerName: result.issuer, claims: result.claims, status: result.status };
}

function verifyDocument(
  presentation: string,
  { request, nowMs, responseUri }: Judging,
  { meta }: Extract<CredentialQuery, { format: 'mso_mdoc' }>,
): Verified | Violation {
  const form = judgeMdocForm(presentation);
  if (form.result === undefined) return form.violations[0];
  const chain = form.result.issuerAuth.x5chain.map((der) => Buffer.from(der).toString('base64'));
  const issuer = findCertifiedIssuer(chain);
  if ('code' in issuer) return issuer;
  const [leaf] = issuer.origin.kind === 'x5c' ? issuer.origin.path : [];
  const isEncrypted = request.terms.responseMode === 'direct_post.jwt';
  const { result, violations } = verifyMdoc(form.result, {
    issuer: { key: issuer.key, notBeforeMs: leaf?.notBeforeMs ?? 0, notAfterMs: leaf?.notAfterMs ?? 0 },
    docType: meta.doctype_value,
    session: {
      clientId: request.clientId,
      nonce: request.nonce,
      responseUri,
      encryptionKeyThumbprint: isEncrypted ? encryptionThumbprint(request.decryptionKey) : undefined,
    },
    atMs: nowMs,
  });
  if (result === undefined) return violations[0];
  return { issuer, issuerName: undefined, claims: result.claims, status: result.status };
}

/** SHA-256 thumbprint of the key that the answer was encrypted to (RFC 7638). */
function encryptionThumbprint(key: unknown): Uint8Array | undefined {
  const { kty, crv, x, y } = isJsonObject(key) ? key : {};
  return jwkThumbprint({ kty, crv, x, y });
}

function failed(found: Violation): JudgedQuery {
  return { verdict: { ...nothing, errors: [errorOf(found)] }, claims: {} };
}

function errorOf({ code, message, field }: Violation) {
  return { code, message, ...(field !== undefined && { field }) };
}

/** A presentation whose signatures are right. */
interface Verified {
  readonly issuer: FoundIssuer;
  readonly issuerName: string | undefined;
  readonly claims: JsonObject;
  readonly status: StatusReference | 'unsupported' | undefined;
}

/** What is judged once the signatures are right: trust, status, claims. */
async function judgeVerified(
  deps: VerifyDeps,
  { issuer, issuerName, claims, status: reference }: Verified,
  judging: Judging,
): Promise<JudgedQuery> {
  const { request, query } = judging;
  const { revocationCheck } = request.terms;
  const trust = await judgeTrust(deps, issuer, judging);
  // An issuer that is not trusted names no address that is asked.
  const status = trust.isTrusted ? await deps.statuses.read(reference, issuer.origin) : unread(reference);
  const errors = [
    ...trustErrors(trust),
    ...authorityErrors(query, issuer),
    ...(trust.isTrusted ? statusErrors(status, revocationCheck) : []),
    ...claimErrors(judging, claims),
  ].map(errorOf);
  const verdict: QueryVerdict = {
    isValid: errors.length === 0,
    errors,
    issuer: issuerName ?? null,
    // Without it the signatures are not right.
    holderKeyVerified: true,
    x5cChainValid: trust.evidence.some(({ anchorThumbprint }) => anchorThumbprint !== undefined),
    statusCheckResult: status,
    trust,
  };
  return { verdict, claims: verdict.isValid ? requestedOf(query, claims) : {} };
}

function unread(reference: Verified['status']): StatusResult {
  return reference === undefined ? 'NotPresent' : 'Unavailable';
}

async function judgeTrust(
  { sources, revocations }: VerifyDeps,
  issuer: FoundIssuer,
  { request, query, nowMs }: Judging,
): Promise<TrustDecision> {
  const policy = request.terms.policies.get(query.id);
  if (policy === undefined) throw new Error(`the request has no policy for the query ${query.id}`);
  const { facts, isStrict } = await gatherFacts(policy, issuer, { sources, revocations, atMs: nowMs });
  return decideTrust(policy, facts, {
    revocationCheck: request.terms.revocationCheck,
    isStrictAboutFreshness: isStrict,
    purpose: query.format === 'mso_mdoc' ? DOCUMENT_SIGNER : undefined,
    atMs: nowMs,
  });
}

function trustErrors({ isTrusted, reason }: TrustDecision): readonly Violation[] {
  return isTrusted ? [] : [violation(reason ?? 'TRUST_NO_SOURCE', 'The issuer is not trusted by the policy')];
}

/** A query may name authorities by their keys (OpenID4VP 1.0, section 6.1.1). */
function authorityErrors(
  { trusted_authorities: authorities }: CredentialQuery,
  { origin }: FoundIssuer,
): readonly Violation[] {
  if (authorities === undefined) return [];
  const path = origin.kind === 'x5c' ? origin.path : [];
  if (
    isOfAuthority(
      path,
      authorities.flatMap(({ values }) => values),
    )
  )
    return [];
  return [violation('TRUST_ISSUER_NOT_LISTED', 'The issuer is of no authority that the query names')];
}

function statusErrors(status: StatusResult, check: 'FailClosed' | 'FailOpen'): readonly Violation[] {
  if (status === 'Revoked') return [violation('STATUS_REVOKED', 'The credential is revoked')];
  if (status === 'Suspended') return [violation('STATUS_SUSPENDED', 'The credential is suspended')];
  const isRefused = status === 'Unavailable' && check === 'FailClosed';
  return isRefused ? [violation('STATUS_UNAVAILABLE', 'The status of the credential cannot be learnt')] : [];
}

/** Claims as the query asks for them, then expected values that it cannot name. */
function claimErrors({ request, query }: Judging, claims: JsonObject): readonly Violation[] {
  const found = judgeClaims(query, claims);
  if (found.length > 0) return found;
  const format = query.format === 'mso_mdoc' ? 'mso_mdoc' : 'sd-jwt-vc';
  const requiredClaims = [...request.terms.requiredClaims];
  return judgeRequirement({ type: '', format, requiredClaims }, claims);
}

/** The claims that a query asked for; all about the subject where it names none. */
function requestedOf({ format, claims: requested }: CredentialQuery, claims: JsonObject): JsonObject {
  if (requested === undefined) return format === 'mso_mdoc' ? claims : subjectClaims(claims);
  return pickClaims(
    claims,
    requested.map(({ path }) => path),
  );
}

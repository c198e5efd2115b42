import { judgeClaims } from '#core/credential/requests/claims.ts';
import type { CredentialQuery } from '#core/credential/requests/dcql.ts';
import { judgeSdJwtForm, type VerifiedSdJwtVc, verifySdJwtVc } from '#core/credential/sd-jwt/verify.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { type Violation, violation } from '#core/errors/errors.ts';
import { decideTrust, type TrustDecision } from '#core/trust/evaluate.ts';
import type { StoredRequest } from '../requests/store.ts';
import { INSTALLATION_POLICY } from '../requests/terms.ts';
import type { TrustSources } from '../trust-sources/trust-sources.ts';
import { type FoundIssuer, findIssuer, gatherFacts } from './issuer.ts';
import type { StatusReader } from './status.ts';
import type { JudgedQuery, QueryVerdict, StatusResult } from './verdict.ts';

export interface VerifyDeps {
  readonly sources: TrustSources;
  readonly statuses: StatusReader;
}

interface Judging {
  readonly request: StoredRequest;
  readonly query: CredentialQuery;
  readonly nowMs: number;
}

/** Members of the payload that say nothing about the subject. */
const technical: ReadonlySet<string> = new Set([
  'iss',
  'iat',
  'nbf',
  'exp',
  'cnf',
  'vct',
  'status',
  'vct#integrity',
]);

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
  if (judging.query.format !== 'dc+sd-jwt')
    return failed(violation('FORMAT', 'The format is not verified yet'));
  const form = judgeSdJwtForm(presentation);
  if (form.result === undefined) return failed(form.violations[0]);
  const issuer = await findIssuer(form.result.issuerJwt.header, deps.sources);
  if ('code' in issuer) return failed(issuer);
  const { request, query, nowMs } = judging;
  const { result, violations } = verifySdJwtVc(form.result, {
    issuerKey: issuer.key,
    algorithms: ['ES256'],
    types: query.meta.vct_values,
    keyBinding: { nonce: request.nonce, audience: request.clientId, algorithms: ['ES256', 'EdDSA'] },
    atMs: nowMs,
  });
  if (result === undefined) return failed(violations[0]);
  return judgeVerified(deps, { result, issuer }, judging);
}

function failed(found: Violation): JudgedQuery {
  return { verdict: { ...nothing, errors: [errorOf(found)] }, claims: {} };
}

function errorOf({ code, message, field }: Violation) {
  return { code, message, ...(field !== undefined && { field }) };
}

interface Verified {
  readonly result: VerifiedSdJwtVc;
  readonly issuer: FoundIssuer;
}

/** What is judged once the signatures are right: trust, status, claims. */
async function judgeVerified(
  deps: VerifyDeps,
  { result, issuer }: Verified,
  judging: Judging,
): Promise<JudgedQuery> {
  const { request, query } = judging;
  const { revocationCheck } = request.terms;
  const [trust, status] = await Promise.all([
    judgeTrust(deps, issuer, judging),
    deps.statuses.read(result.status, issuer.origin),
  ]);
  const errors = [
    ...trustErrors(trust),
    ...statusErrors(status, revocationCheck),
    ...judgeClaims(query, result.claims),
  ].map(errorOf);
  const verdict: QueryVerdict = {
    isValid: errors.length === 0,
    errors,
    issuer: result.issuer ?? null,
    holderKeyVerified: result.holderKey !== undefined,
    x5cChainValid: trust.evidence.some(({ anchorThumbprint }) => anchorThumbprint !== undefined),
    statusCheckResult: status,
    trust,
  };
  return { verdict, claims: verdict.isValid ? requestedOf(query, result.claims) : {} };
}

async function judgeTrust(
  { sources }: VerifyDeps,
  issuer: FoundIssuer,
  { request, query, nowMs }: Judging,
): Promise<TrustDecision> {
  const policy = request.terms.policies[query.id] ?? INSTALLATION_POLICY;
  const { facts, isStrict } = await gatherFacts(policy, issuer, sources);
  return decideTrust(policy, facts, {
    revocationCheck: request.terms.revocationCheck,
    isStrictAboutFreshness: isStrict,
    atMs: nowMs,
  });
}

function trustErrors({ isTrusted, reason }: TrustDecision): readonly Violation[] {
  return isTrusted ? [] : [violation(reason ?? 'TRUST_NO_SOURCE', 'The issuer is not trusted by the policy')];
}

function statusErrors(status: StatusResult, check: 'FailClosed' | 'FailOpen'): readonly Violation[] {
  if (status === 'Revoked') return [violation('STATUS_REVOKED', 'The credential is revoked')];
  if (status === 'Suspended') return [violation('STATUS_SUSPENDED', 'The credential is suspended')];
  const isRefused = status === 'Unavailable' && check === 'FailClosed';
  return isRefused ? [violation('STATUS_UNAVAILABLE', 'The status of the credential cannot be learnt')] : [];
}

/** The claims that a query asked for; all about the subject where it names none. */
function requestedOf({ claims: requested }: CredentialQuery, claims: JsonObject): JsonObject {
  const names = requested?.map(({ path }) => String(path[0]));
  const kept = Object.entries(claims).filter(
    ([name]) => !technical.has(name) && (names === undefined || names.includes(name)),
  );
  return Object.fromEntries(kept);
}

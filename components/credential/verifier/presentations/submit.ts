import { randomBytes } from 'node:crypto';
import { isSatisfied, parseVpToken } from '#core/credential/requests/submission.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import type { TrustDecision } from '#core/trust/evaluate.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { FormParameters } from '#kit/http/http.ts';
import { insertEvents } from '../../audit/store.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Meter } from '../../metrics.ts';
import { createSecret, secretHash } from '../../protocol/secrets.ts';
import { responseUri } from '../requests/request-object.ts';
import { findRequest, type StoredRequest, writeVerdict } from '../requests/store.ts';
import { readResponse, type WalletResponse } from './read-response.ts';
import { presentTrust, type QueryVerdict } from './verdict.ts';
import { type VerifyDeps, verifyPresentation } from './verify.ts';

export interface SubmitDeps extends VerifyDeps {
  readonly issuerUrl: string;
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
  readonly meter: Meter;
}

/**
 * Takes the answer of a wallet: reads, verifies, and writes the verdict about the first one. The answer to the wallet
 * tells nothing about the verdict.
 * @returns where the wallet sends the person, if the request says so
 * @throws AppError not_found REQUEST_NOT_FOUND, gone REQUEST_ENDED, conflict ALREADY_SUBMITTED, and those of `readResponse`
 * and `parseVpToken`, after which the wallet may answer again
 */
export async function submitResponse(
  deps: SubmitDeps,
  requestId: string,
  form: FormParameters,
): Promise<{ readonly redirectUri: string | undefined }> {
  const request = await findRequest(deps.db.read, requestId);
  const now = new Date(deps.clock.nowMs());
  if (request === undefined) throw refusal('REQUEST_NOT_FOUND');
  if (request.status === 'Verified' || request.status === 'Failed') throw refusal('ALREADY_SUBMITTED');
  if (request.status === 'Expired' || request.expiresAt <= now) throw refusal('REQUEST_ENDED');
  const response = await readResponse(form, request);
  const judged = await judge(deps, request, response);
  const code = request.redirectUri === null ? undefined : createSecret(randomBytes);
  const isWritten = await deps.db.transact(async (tx) => {
    const isFirst = await writeVerdict(tx, request.id, {
      status: judged.isValid ? 'Verified' : 'Failed',
      verdict: { errors: judged.errors, perQuery: judged.verdicts },
      claims: judged.claims,
      responseCodeHash: code === undefined ? undefined : secretHash(code),
      at: now,
    });
    if (isFirst) await insertEvents(tx, eventsOf(request, judged, now));
    return isFirst;
  });
  if (!isWritten) throw refusal('ALREADY_SUBMITTED');
  deps.meter.answered(judged.isValid ? 'verified' : 'failed');
  return { redirectUri: redirectOf(request.redirectUri, code) };
}

function redirectOf(uri: string | null, code: string | undefined): string | undefined {
  if (uri === null || code === undefined) return undefined;
  const url = new URL(uri);
  url.searchParams.set('response_code', code);
  return url.href;
}

/** One event for each issuer that is not trusted, for the organisation that asked. */
function eventsOf({ id, organizationId }: StoredRequest, { notTrusted }: Judged, at: Date) {
  if (organizationId === undefined) return [];
  return notTrusted.map(
    (detail) => ({ organizationId, kind: 'notTrusted', resourceId: id, detail, at }) as const,
  );
}

interface Judged {
  readonly isValid: boolean;
  readonly errors: QueryVerdict['errors'];
  readonly verdicts: Readonly<Record<string, object>>;
  readonly claims: Readonly<Record<string, JsonObject>>;
  /** Why issuers are not trusted. */
  readonly notTrusted: readonly string[];
}

async function judge(deps: SubmitDeps, request: StoredRequest, response: WalletResponse): Promise<Judged> {
  if (response.kind === 'declined') {
    const error = {
      code: 'WALLET_DECLINED',
      message: `The wallet answered ${JSON.stringify(response.error)}`,
    };
    return { isValid: false, errors: [error], verdicts: {}, claims: {}, notTrusted: [] };
  }
  const nowMs = deps.clock.nowMs();
  const answerTo = responseUri(deps.issuerUrl, request.id);
  const found = parseVpToken(request.terms.query, response.vpToken);
  const judged = await Promise.all(
    found.flatMap(({ query, presentations }) =>
      presentations.map(async (one, at) => ({
        queryId: query.id,
        key: at === 0 ? query.id : `${query.id}#${at + 1}`,
        ...(await verifyPresentation(deps, one, { request, query, nowMs, responseUri: answerTo })),
      })),
    ),
  );
  // Several presentations of one query must all verify.
  const failed = new Set(judged.flatMap(({ queryId, verdict }) => (verdict.isValid ? [] : [queryId])));
  const verified = new Set(found.map(({ query }) => query.id).filter((id) => !failed.has(id)));
  const isValid = isSatisfied(request.terms.query, verified);
  const errors = judged.flatMap(({ verdict }) => verdict.errors);
  const refusals = judged.flatMap(({ queryId, verdict: { trust } }) =>
    refusalOf(trust).map((reason) => [queryId, reason] as const),
  );
  return {
    isValid,
    errors: isValid ? [] : missing(errors),
    verdicts: Object.fromEntries(judged.map(({ key, verdict }) => [key, presentVerdict(verdict)])),
    claims: Object.fromEntries(judged.map(({ key, claims }) => [key, claims])),
    notTrusted: [...new Map(refusals).values()],
  };
}

function refusalOf(trust: TrustDecision | undefined): readonly string[] {
  return trust === undefined || trust.isTrusted ? [] : [trust.reason ?? 'NOT_TRUSTED'];
}

/** Queries that were not answered are an error of their own. */
function missing(errors: QueryVerdict['errors']): QueryVerdict['errors'] {
  const absent = { code: 'CLAIM_MISSING', message: 'A credential that is required was not presented' };
  return errors.length > 0 ? errors : [absent];
}

function presentVerdict({ trust, ...verdict }: QueryVerdict): object {
  return { ...verdict, trust: presentTrust(trust) };
}

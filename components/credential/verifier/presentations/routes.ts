import { z } from 'zod';
import { equalClaims } from '#core/credential/requests/claims.ts';
import { equalSecrets } from '#core/crypto/hash.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { type App, acceptForms, addRoute, findFormText, json, parseForm } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { refusal, refusals } from '../../errors.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { walletRoute } from '../../protocol/route.ts';
import { secretHash } from '../../protocol/secrets.ts';
import { creatorOf } from '../requests/routes.ts';
import { findRequest, releaseResult, type StoredRequest } from '../requests/store.ts';
import { type SubmitDeps, submitResponse } from './submit.ts';

export interface PresentationRouteDeps extends SubmitDeps {
  readonly log: Logger;
}

const text = z.string();
const nullable = text.nullable();

const errorSchema = z.object({ code: text, message: text, field: text.optional() });
const trustSchema = z
  .object({
    decision: z.enum(['Trusted', 'NotTrusted']),
    reason: nullable,
    assuranceLevel: nullable,
    evidence: z.array(
      z.object({
        kind: text,
        vouched: z.boolean(),
        reason: text.optional(),
        anchorThumbprint: text.optional(),
        trustListId: text.optional().describe('`{trustListId}#{sequenceNumber}`'),
        freshness: z.enum(['Fresh', 'Stale']),
        evaluatedAt: text,
      }),
    ),
  })
  .nullable();

const verdictSchema = z.object({
  isValid: z.boolean(),
  errors: z.array(errorSchema),
  issuer: nullable.describe('`iss`, as the credential has it; trust says whether its signer is trusted.'),
  holderKeyVerified: z.boolean(),
  x5cChainValid: z.boolean(),
  statusCheckResult: z.enum(['Valid', 'Revoked', 'Suspended', 'Unavailable', 'NotPresent']),
  trust: trustSchema,
});

const claimsSchema = z
  .record(text, z.unknown())
  .nullable()
  .describe('Null once they were erased, after 15 min.');
const storedVerdict = z.object({ errors: z.array(errorSchema), perQuery: z.record(text, verdictSchema) });
const storedClaims = z.record(text, z.record(text, z.unknown())).nullable();

const resultSchema = z
  .object({
    requestId: text,
    state: z.enum(['Pending', 'Submitted', 'Verified', 'Failed', 'Expired']),
    result: verdictSchema
      .extend({
        verifiedClaims: claimsSchema.describe(
          'Of all presentations; a claim that has different values in two of them is in perQuery alone.',
        ),
        perQuery: z
          .record(text, verdictSchema.extend({ verifiedClaims: claimsSchema }))
          .describe('By query id; `{id}#2` and so on for further presentations of a query with `multiple`.'),
      })
      .nullable(),
    expiresAt: text,
  })
  .meta({ id: 'PresentationResult' });

const requestId = z.object({ requestId: z.guid() });
const tag = 'Presentations';
const bodyLimitBytes = 1024 * 1024;

/** Mounts the answers of wallets, and the results. */
export function mountPresentationRoutes(app: App, deps: PresentationRouteDeps): void {
  app.register((scope: App, _options, done) => {
    acceptForms(scope);
    mountDirectPost(scope, deps);
    done();
  });

  addRoute(app, {
    method: 'GET',
    path: '/api/v1/verifier/requests/:requestId/result',
    operationId: 'getPresentationResult',
    tag,
    summary: 'The verdict about the answer of a wallet',
    description: 'For the creator of the request alone.',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    params: requestId,
    query: z.object({
      response_code: text
        .max(64)
        .optional()
        .describe('Came with the person to `redirectUri`; without it the result stays Submitted.'),
    }),
    noStore: true,
    answers: { 200: json('The state, and the result once there is one.', resultSchema) },
    refusals: refusals('REQUEST_NOT_FOUND'),
    handle: async ({ caller, params, query }) => {
      const request = await findRequest(deps.db.read, params.requestId);
      if (request === undefined || request.createdBy !== creatorOf(caller))
        throw refusal('REQUEST_NOT_FOUND');
      const isReleased = await release(deps, request, query.response_code);
      return present(request, { isReleased, nowMs: deps.clock.nowMs() });
    },
  });
}

function mountDirectPost(app: App, deps: PresentationRouteDeps): void {
  addRoute(app, {
    ...walletRoute(() => deps.log),
    method: 'POST',
    path: '/api/v1/verifier/requests/:requestId/direct-post',
    operationId: 'submitPresentation',
    tag,
    summary: 'The answer of a wallet (OpenID4VP 1.0, section 8.2)',
    policy: 'Anonymous',
    params: requestId,
    consumes: 'application/x-www-form-urlencoded',
    body: {
      schema: z.object({
        vp_token: text.optional().describe('JSON: arrays of presentations by query id.'),
        state: text.optional(),
        response: text.optional().describe('JWE with `vp_token` and `state`, in direct_post.jwt.'),
        error: text.optional(),
        error_description: text.optional(),
        presentation_submission: text.optional().describe('Of earlier drafts; it has no effect.'),
      }),
      example: { vp_token: '{"credential":["eyJ..."]}', state: '...' },
    },
    bodyLimitBytes,
    answers: { 200: json('The answer was taken.', z.object({ redirect_uri: text.optional() })) },
    handle: async ({ request }) => {
      const id = requestId.safeParse(request.params).data?.requestId;
      if (id === undefined) throw refusal('REQUEST_NOT_FOUND');
      const form = findFormText(request.body);
      if (form === undefined) throw new ProtocolError('invalid_request', 'the body is no form');
      const { redirectUri } = await submitResponse(deps, id, parseForm(form));
      return redirectUri === undefined ? {} : { redirect_uri: redirectUri };
    },
  });
}

/** Whether a result may be read: it needs no code, or its code came. */
async function release(
  { db }: PresentationRouteDeps,
  { id, responseCodeHash }: StoredRequest,
  code: string | undefined,
): Promise<boolean> {
  if (responseCodeHash === null) return true;
  if (code === undefined || !equalSecrets(secretHash(code), responseCodeHash)) return false;
  await db.transact((tx) => releaseResult(tx, id));
  return true;
}

function present(request: StoredRequest, { isReleased, nowMs }: { isReleased: boolean; nowMs: number }) {
  const { id, status, expiresAt } = request;
  const shown = { requestId: id, expiresAt: expiresAt.toISOString() };
  if (status === 'Pending' || status === 'Expired') {
    const isOpen = status === 'Pending' && expiresAt.getTime() > nowMs;
    return { ...shown, state: isOpen ? ('Pending' as const) : ('Expired' as const), result: null };
  }
  if (!isReleased) return { ...shown, state: 'Submitted' as const, result: null };
  return { ...shown, state: status, result: resultOf(request) };
}

function resultOf({ status, verdict, claims }: StoredRequest) {
  const { errors, perQuery } = storedVerdict.parse(verdict);
  const byQuery = storedClaims.parse(claims);
  const all = Object.entries(perQuery).map(([id, one]) => [
    id,
    { ...one, verifiedClaims: byQuery === null ? null : (byQuery[id] ?? {}) },
  ]);
  const verdicts = Object.values(perQuery);
  const isVerified = status === 'Verified';
  // A request may verify although a query that it does not need failed: nothing of that one is shown for the whole.
  const shown = verdicts.find(({ isValid }) => isValid === isVerified) ?? verdicts[0];
  return {
    isValid: isVerified,
    errors,
    issuer: shown?.issuer ?? null,
    holderKeyVerified: shown?.holderKeyVerified ?? false,
    x5cChainValid: shown?.x5cChainValid ?? false,
    statusCheckResult: shown?.statusCheckResult ?? 'NotPresent',
    trust: shown?.trust ?? null,
    verifiedClaims: byQuery === null ? null : mergeClaims(Object.values(byQuery)),
    perQuery: Object.fromEntries(all),
  };
}

/** The claims of all presentations. Where two say different things, neither stands for the whole. */
function mergeClaims(claims: readonly JsonObject[]): JsonObject {
  const byName = Map.groupBy(claims.flatMap(Object.entries), ([name]) => name);
  const agreed = [...byName].flatMap(([name, [first, ...more]]) =>
    first !== undefined && more.every(([, value]) => equalClaims(value, first[1])) ? [[name, first[1]]] : [],
  );
  return Object.fromEntries(agreed);
}

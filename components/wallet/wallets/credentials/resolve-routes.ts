import { z } from 'zod';
import { readableText } from '#core/encoding/readable.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { refusals } from '../../errors.ts';
import type { KeepDeps } from './keep.ts';
import { resolveForHolder } from './resolve.ts';

const longestObject = 65_536;

const body = z
  .strictObject({
    requestUri: z
      .string()
      .min(1)
      .max(longestObject)
      .optional()
      .describe('https address of the request object, or the URI that was scanned (openid4vp://?...).'),
    requestObject: z.string().min(1).max(longestObject).optional().describe('The request object itself.'),
    clientId: z.string().min(1).max(2_048).optional().describe('The client id that came beside it.'),
  })
  .refine(
    ({ requestUri, requestObject }) => (requestUri === undefined) !== (requestObject === undefined),
    'needs requestUri or requestObject, and not both',
  );

const resolvedSchema = z
  .object({
    clientId: z.string(),
    verifierHost: z.string().describe('The host that the answer goes to.'),
    responseUri: z.string(),
    responseMode: z.string(),
    nonce: z.string(),
    state: z.string().nullable(),
    dcqlQuery: z.unknown().describe('What is asked (OpenID4VP 1.0, section 6).'),
    purpose: z.string().nullable().describe('Why, in the words of the verifier.'),
    verifierAuthState: z
      .enum(['TrustedListVerified', 'AuthenticUntrusted', 'Unverifiable'])
      .describe('An Unverifiable request is shown and never answered by itself.'),
    anchorSetId: z.string().nullable().describe('What vouches: `{trustListId}#{sequence}`, or `configured`.'),
    reason: z.string().nullable().describe('Why the verifier is not TrustedListVerified.'),
    matches: z.array(
      z.object({
        queryId: z.string(),
        candidates: z.array(z.object({ credentialId: z.string(), disclosableClaims: z.array(z.string()) })),
      }),
    ),
    satisfiable: z.boolean().describe('Whether the credentials of the caller can answer.'),
    unsatisfiedQueryIds: z.array(z.string()),
  })
  .meta({ id: 'ResolvedPresentationRequest' });

/** What verifiers ask of the caller, before they answer. */
export function mountResolveRoute(app: App, deps: KeepDeps): void {
  addRoute(app, {
    tag: 'Holder',
    policy: 'RequireConsumerAudience',
    rateLimit: 'Strict',
    method: 'POST',
    path: '/api/v1/wallet/presentations/resolve-request',
    operationId: 'resolvePresentationRequest',
    summary: 'Check what a verifier asks, whether it is who it says, and which credentials answer',
    body: {
      schema: body,
      example: {
        requestUri:
          'openid4vp://?client_id=x509_san_dns%3Averifier.example&request_uri=https%3A%2F%2Fverifier.example%2F1',
      },
    },
    answers: { 200: json('The request. Nothing was sent to the verifier.', resolvedSchema) },
    refusals: refusals(
      'PERSON_REQUIRED',
      'REQUEST_OBJECT_INVALID',
      'REQUEST_HOST_MISMATCH',
      'REQUEST_UNREACHABLE',
      'DCQL_INVALID',
      'WALLET_LOCKED',
      'CREDENTIALS_UNAVAILABLE',
    ),
    noStore: true,
    handle: async ({ caller, body: source }) => {
      const { request, found } = await resolveForHolder(deps, caller, source);
      const { clientId, verifierHost, responseUri, responseMode, nonce, authState } = request;
      return {
        clientId,
        verifierHost,
        responseUri,
        responseMode,
        nonce,
        state: request.state ?? null,
        dcqlQuery: request.query,
        purpose: purposeOf(request.query),
        verifierAuthState: authState,
        anchorSetId: request.anchorSetId ?? null,
        reason: request.reason ?? null,
        matches: found.matches.map(({ queryId, candidates }) => ({
          queryId,
          candidates: candidates.map(({ credentialId, disclosableClaims }) => ({
            credentialId,
            disclosableClaims: [...disclosableClaims],
          })),
        })),
        satisfiable: found.isSatisfiable,
        unsatisfiedQueryIds: [...found.unsatisfied],
      };
    },
  });
}

const withPurpose = z.object({
  credential_sets: z.array(z.object({ purpose: readableText.max(500) })).min(1),
});

/**
 * Drafts of DCQL had the purpose beside the sets of credentials, where verifiers still write it. A text that changes how
 * the words around it read is not shown.
 */
function purposeOf(query: unknown): string | null {
  return withPurpose.safeParse(query).data?.credential_sets[0]?.purpose ?? null;
}

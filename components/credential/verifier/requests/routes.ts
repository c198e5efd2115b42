import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import { type App, acceptForms, addRoute, findFormText, json, media, parseForm } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { refusal, refusals } from '../../errors.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { walletRoute } from '../../protocol/route.ts';
import { type CreateRequestDeps, createRequest, requestBody } from './create.ts';
import { readRequestObject } from './read-object.ts';

export interface RequestRouteDeps extends CreateRequestDeps {
  readonly log: Logger;
}

const text = z.string();

const createdSchema = z
  .object({
    requestId: text,
    authorizationRequestUri: text.describe('For a link or a QR code.'),
    requestUri: text,
    clientId: text,
    nonce: text,
    expiresAt: text,
    state: z.literal('Pending'),
  })
  .meta({ id: 'CreatedPresentationRequest' });

const requestId = z.object({ requestId: z.guid() });
const objectPath = '/api/v1/verifier/requests/:requestId/request-object';
const objectAnswer = { 200: media('application/oauth-authz-req+jwt', 'The signed request object.') };
const tag = 'Presentations';
/** Longest `wallet_nonce`. */
const mostNonceCharacters = 512;

/** The creator of a request, which alone reads its result. */
export function creatorOf({ kind, platformUserId, subject, clientId }: Caller): string {
  return kind === 'service' ? `service:${clientId}` : `person:${platformUserId ?? subject}`;
}

/** Mounts requests for presentations and their signed objects. */
export function mountRequestRoutes(app: App, deps: RequestRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/v1/verifier/requests',
    operationId: 'createPresentationRequest',
    tag,
    summary: 'Ask a wallet for presentations',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    body: {
      schema: requestBody,
      example: { credentialType: 'urn:platform:credential:site-permit', requiredClaims: ['permitNumber'] },
    },
    noStore: true,
    answers: { 201: json('The request; `authorizationRequestUri` is for the wallet.', createdSchema) },
    refusals: refusals('DCQL_INVALID', 'REDIRECT_URI_REFUSED', 'PROFILE_WEAKER'),
    handle: ({ caller, body }) =>
      createRequest(deps, body, { createdBy: creatorOf(caller), organizationId: caller.organizationId }),
  });

  addRoute(app, {
    ...walletRoute(() => deps.log),
    method: 'GET',
    path: objectPath,
    operationId: 'getRequestObject',
    tag,
    summary: 'The request object of a request (RFC 9101)',
    policy: 'Anonymous',
    params: requestId,
    answers: objectAnswer,
    handle: ({ request }) => readObject(deps, request.params, undefined),
  });

  app.register((scope: App, _options, done) => {
    acceptForms(scope);
    mountPostedObject(scope, deps);
    done();
  });
}

function mountPostedObject(app: App, deps: RequestRouteDeps): void {
  addRoute(app, {
    ...walletRoute(() => deps.log),
    method: 'POST',
    path: objectPath,
    operationId: 'createRequestObject',
    tag,
    summary: 'The request object with a nonce of the wallet (OpenID4VP 1.0, section 5.10)',
    policy: 'Anonymous',
    params: requestId,
    consumes: 'application/x-www-form-urlencoded',
    body: {
      schema: z.object({
        wallet_nonce: text.max(mostNonceCharacters).optional(),
        wallet_metadata: text.optional(),
      }),
      example: { wallet_nonce: 'qPmxiNFCR3QTm19POc8u' },
    },
    bodyLimitBytes: 65_536,
    answers: objectAnswer,
    handle: ({ request }) => readObject(deps, request.params, nonceOf(request.body)),
  });
}

function nonceOf(body: unknown): string | undefined {
  const form = findFormText(body);
  const nonce = form === undefined ? undefined : parseForm(form).get('wallet_nonce');
  if (nonce !== undefined && nonce.length > mostNonceCharacters)
    throw new ProtocolError('invalid_request', 'wallet_nonce is too long');
  return nonce;
}

/** Errors: those of `readRequestObject`. */
async function readObject(
  deps: RequestRouteDeps,
  params: unknown,
  walletNonce: string | undefined,
): Promise<string> {
  const id = requestId.safeParse(params).data?.requestId;
  if (id === undefined) throw refusal('REQUEST_NOT_FOUND');
  return readRequestObject(deps, id, walletNonce);
}

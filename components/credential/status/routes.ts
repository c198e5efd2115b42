import { z } from 'zod';
import { readableText } from '#core/encoding/readable.ts';
import { type App, addRoute, answer, json, media } from '#kit/http/http.ts';
import { refusals } from '../errors.ts';
import type { CredentialStatus } from '../protocol/statuses.ts';
import { type ChangeStatusDeps, changeStatus } from './change.ts';
import { type StatusLists, ttlSeconds } from './tokens.ts';

export interface StatusRouteDeps extends ChangeStatusDeps {
  readonly lists: StatusLists;
}

const text = z.string();
const tag = 'Credential status';

const changedSchema = z
  .object({
    credentialId: text,
    status: z.enum(['Active', 'Suspended', 'Revoked']),
    listId: text,
    index: z.int(),
    changedAt: text,
    transactionId: text
      .nullable()
      .describe(
        'The record on the register of the offer, sealed later; null without one, or while it cannot be signed.',
      ),
  })
  .meta({ id: 'CredentialStatusChange' });

const changes = [
  ['revoke', 'Revoked', 'Revoke a credential, for good'],
  ['suspend', 'Suspended', 'Suspend a credential'],
  ['reinstate', 'Active', 'Reinstate a suspended credential'],
] as const satisfies readonly (readonly [string, CredentialStatus, string])[];

const ofLists = refusals(
  'STATUS_LIST_NOT_FOUND',
  'ISSUER_WALLET_MISMATCH',
  'CERT_NOT_ENROLLED',
  'CERT_EXTERNAL_ANCHOR_UNAVAILABLE',
  'CERT_KEY_NOT_ELIGIBLE',
  'CERT_KEY_MISMATCH',
  'WALLET_LOCKED',
  'WALLETS_UNAVAILABLE',
  'CERTIFICATES_UNAVAILABLE',
);

const caching = { 'cache-control': `public, max-age=${ttlSeconds}`, vary: 'accept' } as const;

/** Mounts the status lists, and the changes of statuses. */
export function mountStatusRoutes(app: App, deps: StatusRouteDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/v1/credentials/ietf-status-lists/:listId',
    operationId: 'getStatusList',
    tag,
    summary: 'Statuses of credentials as a signed list (draft-ietf-oauth-status-list-21)',
    policy: 'Anonymous',
    rateLimit: 'CredentialExchange',
    params: z.object({ listId: z.guid() }),
    headers: z.object({ accept: text.optional().describe('`application/statuslist+cwt` for a CWT.') }),
    answers: {
      200: media('application/statuslist+jwt', 'The status list token.', {
        'application/statuslist+cwt': text,
      }),
    },
    refusals: ofLists,
    handle: async ({ params, request }) => {
      const isCwt = request.headers.accept?.includes('application/statuslist+cwt') === true;
      if (!isCwt) return answer(200, await deps.lists.get(params.listId, 'jwt'), caching);
      const headers = { ...caching, 'content-type': 'application/statuslist+cwt' };
      return answer(200, await deps.lists.get(params.listId, 'cwt'), headers);
    },
  });

  addRoute(app, {
    method: 'GET',
    path: '/api/v1/credentials/status-lists/:listId',
    operationId: 'getBitstringStatusList',
    tag,
    summary: 'Statuses of credentials as a bitstring (W3C Bitstring Status List v1.0), secured as a JWT',
    policy: 'Anonymous',
    rateLimit: 'CredentialExchange',
    params: z.object({ listId: z.guid() }),
    query: z.object({ purpose: z.enum(['revocation', 'suspension']).default('revocation') }),
    answers: { 200: media('application/vc+jwt', 'The status list credential.') },
    refusals: ofLists,
    handle: async ({ params, query }) =>
      answer(200, await deps.lists.get(params.listId, query.purpose), caching),
  });

  for (const [verb, to, summary] of changes) {
    addRoute(app, {
      method: 'POST',
      path: `/api/v1/credentials/:credentialId/${verb}`,
      operationId: `${verb}Credential`,
      tag,
      summary,
      description: `For Administrators of the issuing organisation, and services. Readers of the list see it within ${ttlSeconds} s, behind an HTTP cache within ${2 * ttlSeconds} s.`,
      policy: 'RequireAuthenticated',
      rateLimit: 'Api',
      params: z.object({ credentialId: z.guid() }),
      body: {
        schema: z.strictObject({ reason: readableText.min(1).max(500) }),
        example: { reason: 'The permit was withdrawn.' },
      },
      answers: { 200: json('The new status.', changedSchema) },
      refusals: refusals('CREDENTIAL_NOT_FOUND', 'CREDENTIAL_WITHOUT_STATUS', 'STATUS_TRANSITION'),
      handle: ({ caller, params, body }) =>
        changeStatus(deps, caller, { credentialId: params.credentialId, to, reason: body.reason }),
    });
  }
}

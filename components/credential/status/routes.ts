import { z } from 'zod';
import { readableText } from '#core/encoding/readable.ts';
import { type App, addRoute, answer, json, media } from '#kit/http/http.ts';
import { refusals } from '../errors.ts';
import { type ChangeStatusDeps, changeStatus } from './change.ts';
import type { CredentialStatus } from './statuses.ts';
import { getStatusToken, type StatusTokenDeps, ttlSeconds } from './tokens.ts';

export type StatusRouteDeps = ChangeStatusDeps & StatusTokenDeps;

const text = z.string();
const tag = 'Credential status';

const changedSchema = z
  .object({
    credentialId: text,
    status: z.enum(['Active', 'Suspended', 'Revoked']),
    listId: text,
    index: z.int(),
    changedAt: text,
  })
  .meta({ id: 'CredentialStatusChange' });

const changes = [
  ['revoke', 'Revoked', 'Revoke a credential, for good'],
  ['suspend', 'Suspended', 'Suspend a credential'],
  ['reinstate', 'Active', 'Reinstate a suspended credential'],
] as const satisfies readonly (readonly [string, CredentialStatus, string])[];

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
    answers: { 200: media('application/statuslist+jwt', 'The status list token.') },
    refusals: refusals(
      'STATUS_LIST_NOT_FOUND',
      'ISSUER_WALLET_MISMATCH',
      'CERT_NOT_ENROLLED',
      'CERT_EXTERNAL_ANCHOR_UNAVAILABLE',
      'CERT_KEY_NOT_ELIGIBLE',
      'CERT_KEY_MISMATCH',
      'WALLET_LOCKED',
      'WALLETS_UNAVAILABLE',
      'CERTIFICATES_UNAVAILABLE',
    ),
    handle: async ({ params }) =>
      answer(200, await getStatusToken(deps, params.listId), {
        'cache-control': `public, max-age=${ttlSeconds}`,
      }),
  });

  for (const [verb, to, summary] of changes) {
    addRoute(app, {
      method: 'POST',
      path: `/api/v1/credentials/:credentialId/${verb}`,
      operationId: `${verb}Credential`,
      tag,
      summary,
      description: `For Administrators of the issuing organisation, and services. Readers of the list see it within ${ttlSeconds} s.`,
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

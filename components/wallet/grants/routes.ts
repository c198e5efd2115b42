import { z } from 'zod';
import { readableText } from '#core/encoding/readable.ts';
import { apiTimestamp, findTimestamp, ticksToMs } from '#core/encoding/timestamp.ts';
import { identifier as platformUserId } from '#core/identity/identifier.ts';
import { type App, addRoute, empty, json, page, pageSchema, pageWindow, paging } from '#kit/http/http.ts';
import { refusals, walletRefusals } from '../errors.ts';
import {
  identifier,
  operationIdUnder,
  WALLET_PREFIXES,
  type WalletPrefix,
  walletParams,
} from '../wallets/records/schemas.ts';
import { isActiveGrant, openContexts } from './delegation.ts';
import { checkAccess, type GrantDeps, grantAccess, listAccess, revokeAccess } from './grant.ts';
import type { Grant } from './store.ts';

const accessRight = z.enum(['ReadOnly', 'ReadWrite', 'Owner']);

const timestamp = z.string().transform((text, context): number => {
  const ticks = findTimestamp(text);
  if (ticks !== undefined) return ticksToMs(ticks);
  context.addIssue({ code: 'custom', message: 'not an ISO 8601 timestamp with an offset' });
  return z.NEVER;
});

const grantBody = z.object({
  subject: platformUserId.describe('Platform user.'),
  accessRight,
  reason: readableText.max(500).optional(),
  expiresAt: timestamp.optional(),
  allowedDerivationContexts: z
    .array(z.string().max(100))
    .max(32)
    .default([])
    .describe(
      'platform:register-attestation or platform:payload-encryption; other contexts cannot be granted.',
    ),
});

const grantSchema = z.object({
  id: z.string(),
  subject: z.string(),
  accessRight,
  reason: z.string().nullable(),
  grantedBy: z.string(),
  grantedAt: z.string(),
  expiresAt: z.string().nullable(),
  allowedDerivationContexts: z.array(z.string()).describe('Contexts that the grant gives access to.'),
  isActive: z.boolean(),
});

const subjectParams = walletParams.extend({ subject: identifier.toLowerCase() });

const checkSchema = z.object({
  subject: z.string(),
  right: accessRight,
  hasAccess: z.boolean(),
  expiresAt: z.string().nullable(),
  allowedDerivationContexts: z.array(z.string()),
});

export function mountGrantRoutes(app: App, deps: GrantDeps): void {
  for (const prefix of WALLET_PREFIXES) {
    mountCollection(app, deps, prefix);
    mountSubject(app, deps, prefix);
  }
}

const route = { tag: 'Wallet access', policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;

function mountCollection(app: App, deps: GrantDeps, prefix: WalletPrefix): void {
  const path = `${prefix}/:id/access`;
  addRoute(app, {
    ...route,
    method: 'POST',
    path,
    operationId: operationIdUnder(prefix, 'grantWalletAccess'),
    summary: 'Grant access to a wallet',
    params: walletParams,
    body: {
      schema: grantBody,
      example: {
        subject: '8f4d9a30-52a5-4d0c-8f6f-0f0b7ac2a001',
        accessRight: 'ReadWrite',
        reason: 'Cover in May',
      },
    },
    idempotency: 'handler',
    answers: { 201: json('The grant.', grantSchema) },
    refusals: [
      ...walletRefusals,
      ...refusals('GRANT_EXISTS', 'GRANT_EXPIRY_PAST', 'OWNER_NOT_GRANTABLE', 'SCOPE_REQUIRED'),
      ...refusals('DERIVED_KEY_NOT_GRANTABLE'),
      ...refusals('UNKNOWN_DERIVATION_CONTEXT', 'DERIVATION_CONTEXT_RESERVED', 'WALLET_LOCKED'),
    ],
    handle: async ({ caller, params, body, idempotencyKey }) => {
      const { subject, accessRight, reason, expiresAt, allowedDerivationContexts } = body;
      const grant = await grantAccess(deps, caller, params.id, {
        subject,
        accessRight,
        reason,
        expiresAtMs: expiresAt,
        allowedContexts: allowedDerivationContexts,
        idempotencyKey,
      });
      return presentGrant(grant, deps.clock.nowMs());
    },
  });

  addRoute(app, {
    ...route,
    method: 'GET',
    path,
    operationId: operationIdUnder(prefix, 'listWalletGrants'),
    summary: 'Grants of a wallet, newest first',
    params: walletParams,
    query: paging(),
    answers: { 200: json('A page of grants.', pageSchema(grantSchema)) },
    refusals: walletRefusals,
    handle: async ({ caller, params, query }) => {
      const { grants, totalCount } = await listAccess(deps, caller, params.id, pageWindow(query));
      const nowMs = deps.clock.nowMs();
      return page(
        grants.map((grant) => presentGrant(grant, nowMs)),
        query,
        totalCount,
      );
    },
  });
}

function mountSubject(app: App, deps: GrantDeps, prefix: WalletPrefix): void {
  const path = `${prefix}/:id/access/:subject`;
  addRoute(app, {
    ...route,
    method: 'DELETE',
    path,
    operationId: operationIdUnder(prefix, 'revokeWalletAccess'),
    summary: 'Revoke the access of a subject',
    params: subjectParams,
    answers: { 204: empty('The subject has no access.') },
    refusals: [...walletRefusals, ...refusals('GRANT_NOT_FOUND')],
    handle: ({ caller, params }) => revokeAccess(deps, caller, params.id, params.subject),
  });

  addRoute(app, {
    ...route,
    method: 'GET',
    path: `${path}/check`,
    operationId: operationIdUnder(prefix, 'checkWalletAccess'),
    summary: 'Whether a subject holds a right',
    params: subjectParams,
    query: z.object({ right: accessRight.default('ReadOnly') }),
    answers: { 200: json('Whether the subject holds it.', checkSchema) },
    refusals: walletRefusals,
    handle: async ({ caller, params, query }) => {
      const question = { subject: params.subject, right: query.right };
      const { hasAccess, grant } = await checkAccess(deps, caller, params.id, question);
      return {
        ...question,
        hasAccess,
        expiresAt: grant?.expiresAtMs === undefined ? null : apiTimestamp(grant.expiresAtMs),
        allowedDerivationContexts: grant === undefined ? [] : openContexts(grant),
      };
    },
  });
}

function presentGrant(grant: Grant, nowMs: number): z.input<typeof grantSchema> {
  return {
    id: grant.id,
    subject: grant.subject,
    accessRight: grant.accessRight,
    reason: grant.reason ?? null,
    grantedBy: grant.grantedBy,
    grantedAt: apiTimestamp(grant.grantedAtMs),
    expiresAt: grant.expiresAtMs === undefined ? null : apiTimestamp(grant.expiresAtMs),
    allowedDerivationContexts: [...openContexts(grant)],
    isActive: isActiveGrant(grant, nowMs),
  };
}

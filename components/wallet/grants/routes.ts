import { z } from 'zod';
import { readableText } from '#core/encoding/readable.ts';
import { apiTimestamp, findTimestamp, ticksToMs } from '#core/encoding/timestamp.ts';
import { identifier as platformUserId } from '#core/identity/identifier.ts';
import {
  type App,
  callerOf,
  emptyAnswer,
  idempotencyHeaders,
  page,
  pageSchema,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
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

const tags = ['Wallet access'];
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

function mountCollection(app: App, deps: GrantDeps, prefix: WalletPrefix): void {
  const path = `${prefix}/:id/access`;
  app.post(
    path,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        tags,
        operationId: operationIdUnder(prefix, 'grantWalletAccess'),
        summary: 'Grant access to a wallet',
        params: walletParams,
        body: grantBody,
        headers: idempotencyHeaders,
        response: { 201: grantSchema },
      },
    },
    async (request, reply) => {
      const { subject, reason, expiresAt, allowedDerivationContexts } = request.body;
      const grant = await grantAccess(deps, callerOf(request), request.params.id, {
        subject,
        accessRight: request.body.accessRight,
        reason,
        expiresAtMs: expiresAt,
        allowedContexts: allowedDerivationContexts,
        idempotencyKey: request.headers['idempotency-key'],
      });
      return reply.code(201).send(presentGrant(grant, deps.clock.nowMs()));
    },
  );

  app.get(
    path,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        tags,
        operationId: operationIdUnder(prefix, 'listWalletGrants'),
        summary: 'Grants of a wallet, newest first',
        params: walletParams,
        querystring: paging(),
        response: { 200: pageSchema(grantSchema) },
      },
    },
    async (request) => {
      const window = pageWindow(request.query);
      const { grants, totalCount } = await listAccess(deps, callerOf(request), request.params.id, window);
      const nowMs = deps.clock.nowMs();
      const items = grants.map((grant) => presentGrant(grant, nowMs));
      return { ...page(items, request.query, totalCount), items };
    },
  );
}

function mountSubject(app: App, deps: GrantDeps, prefix: WalletPrefix): void {
  const path = `${prefix}/:id/access/:subject`;
  app.delete(
    path,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: operationIdUnder(prefix, 'revokeWalletAccess'),
        tags,
        summary: 'Revoke the access of a subject',
        params: subjectParams,
        response: emptyAnswer('The subject has no access.'),
      },
    },
    async (request, reply) => {
      await revokeAccess(deps, callerOf(request), request.params.id, request.params.subject);
      return reply.code(204).send();
    },
  );

  app.get(
    `${path}/check`,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        tags,
        operationId: operationIdUnder(prefix, 'checkWalletAccess'),
        summary: 'Whether a subject holds a right',
        params: subjectParams,
        querystring: z.object({ right: accessRight.default('ReadOnly') }),
        response: { 200: checkSchema },
      },
    },
    async (request) => {
      const question = { subject: request.params.subject, right: request.query.right };
      const answer = await checkAccess(deps, callerOf(request), request.params.id, question);
      const { grant } = answer;
      return {
        ...question,
        hasAccess: answer.hasAccess,
        expiresAt: grant?.expiresAtMs === undefined ? null : apiTimestamp(grant.expiresAtMs),
        allowedDerivationContexts: grant === undefined ? [] : [...openContexts(grant)],
      };
    },
  );
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

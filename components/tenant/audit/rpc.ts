import { z } from 'zod';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { clientIdOf } from '#core/identity/services.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import { type AuditService, CredentialEventKind } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { recordCredentialEvents } from './credential-events.ts';
import { type AuditDeps, reportRefusals } from './refusals.ts';
import { refusalShape } from './schemas.ts';

const mostAtOnce = 500;

const optional = <S extends z.ZodType>(schema: S) =>
  z.union([z.literal('').transform(() => undefined), schema]);

const occurredAtMs = z
  .bigint()
  .min(0n)
  .max(BigInt(Date.UTC(9999, 0)))
  .transform(Number);

const gatheredSchema = z
  .array(
    z.object({
      ...refusalShape,
      resourceType: optional(refusalShape.resourceType),
      resourceId: optional(refusalShape.resourceId),
      platformUserId: optional(refusalShape.platformUserId),
      occurredAtMs,
      occurrences: z.int().min(1).max(1_000_000_000),
    }),
  )
  .max(mostAtOnce);

const kinds = {
  [CredentialEventKind.ISSUED]: 'issued',
  [CredentialEventKind.STATUS_CHANGED]: 'statusChanged',
  [CredentialEventKind.NOT_TRUSTED]: 'notTrusted',
} as const;

const credentialEventsSchema = z
  .array(
    z.object({
      eventId: z.guid(),
      organizationId: refusalShape.organizationId,
      kind: z
        .literal([
          CredentialEventKind.ISSUED,
          CredentialEventKind.STATUS_CHANGED,
          CredentialEventKind.NOT_TRUSTED,
        ])
        .transform((kind) => kinds[kind]),
      resourceId: refusalShape.resourceId,
      detail: refusalShape.reason,
      platformUserId: optional(refusalShape.platformUserId),
      occurredAtMs,
    }),
  )
  .max(mostAtOnce);

/** The calling service is recorded as the reporter. A request with one invalid item is refused as a whole. */
export function auditRpc(deps: AuditDeps): RpcHandlers<(typeof AuditService)['method']> {
  return {
    reportRefusals: async ({ refusals }, { caller, peer }) => {
      assertScope(caller);
      await reportRefusals(deps, peer.clientId, parse(gatheredSchema, refusals));
      return {};
    },
    recordCredentialEvents: async ({ events }, { caller, peer }) => {
      assertScope(caller);
      if (peer.clientId !== clientIdOf('credential'))
        throw new AppError(
          'forbidden',
          genericCode('forbidden'),
          'Only the credential service reports these.',
        );
      const parsed = parse(credentialEventsSchema, events);
      await recordCredentialEvents(
        deps,
        parsed.map(({ eventId, ...event }) => ({ ...event, id: eventId })),
      );
      return {};
    },
  };
}

/** @throws AppError forbidden */
function assertScope(caller: Caller | undefined): void {
  if (caller?.scopes.includes('audit:write') !== true)
    throw new AppError('forbidden', genericCode('forbidden'), 'The token lacks the scope audit:write.');
}

/** @throws AppError invalid */
function parse<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new AppError('invalid', genericCode('invalid'), z.prettifyError(parsed.error));
  return parsed.data;
}

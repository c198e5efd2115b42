import { z } from 'zod';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import type { AuditService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { type AuditDeps, reportRefusals } from './refusals.ts';
import { refusalShape } from './schemas.ts';

const mostRefusals = 500;

const optional = <S extends z.ZodType>(schema: S) =>
  z.union([z.literal('').transform(() => undefined), schema]);

const gatheredSchema = z
  .array(
    z.object({
      ...refusalShape,
      resourceType: optional(refusalShape.resourceType),
      resourceId: optional(refusalShape.resourceId),
      platformUserId: optional(refusalShape.platformUserId),
      occurredAtMs: z
        .bigint()
        .min(0n)
        .max(BigInt(Date.UTC(9999, 0)))
        .transform(Number),
      occurrences: z.int().min(1).max(1_000_000_000),
    }),
  )
  .max(mostRefusals);

/** The calling service is recorded as the reporter. A request with one invalid refusal is refused as a whole. */
export function auditRpc(deps: AuditDeps): RpcHandlers<(typeof AuditService)['method']> {
  return {
    reportRefusals: async ({ refusals }, { caller, peer }) => {
      if (caller?.scopes.includes('audit:write') !== true) {
        throw new AppError('forbidden', genericCode('forbidden'), 'The token lacks the scope audit:write.');
      }
      const parsed = gatheredSchema.safeParse(refusals);
      if (!parsed.success) {
        throw new AppError('invalid', genericCode('invalid'), z.prettifyError(parsed.error));
      }
      await reportRefusals(deps, peer.clientId, parsed.data);
      return {};
    },
  };
}

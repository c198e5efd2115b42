import type { RevocationKind as Kind } from '#kit/auth/auth.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RpcHandlers } from '#kit/rpc/rpc.ts';
import { RevocationKind, type RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import type { TenantDatabase } from '../../database/schema.ts';
import { logStart } from './revocation.ts';
import { listRevocations } from './store.ts';

const kinds: Readonly<Record<Kind, RevocationKind>> = {
  token: RevocationKind.TOKEN,
  family: RevocationKind.SESSION,
  identity: RevocationKind.IDENTITY,
  platform_user: RevocationKind.PLATFORM_USER,
  organization: RevocationKind.ORGANIZATION,
};

const defaultLimit = 1_000;
const maxLimit = 10_000;

export function revocationRpc(deps: {
  readonly read: Reader<TenantDatabase>;
  readonly clock: Clock;
}): RpcHandlers<(typeof RevocationService)['method']> {
  return {
    listRevocations: async (request) => {
      const limit = request.limit === 0 ? defaultLimit : Math.min(request.limit, maxLimit);
      const page = await listRevocations(deps.read, request.after ?? logStart, {
        limit,
        nowMs: deps.clock.nowMs(),
      });
      return {
        revocations: page.revocations.map((one) => ({
          kind: kinds[one.kind],
          key: one.key,
          notBeforeMs: BigInt(one.notBeforeMs),
          expiresAtMs: BigInt(one.expiresAtMs),
        })),
        next: { transactionId: page.next.transactionId, sequence: page.next.sequence },
        complete: page.complete,
      };
    },
  };
}

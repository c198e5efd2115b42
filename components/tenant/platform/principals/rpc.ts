import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import { type PrincipalService, PrincipalStatus } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import type { StoredPrincipal } from './principal.ts';
import { type RevokePrincipalDeps, revokePrincipal } from './revoke.ts';
import { listPrincipals } from './store.ts';
import { upsert } from './upsert.ts';

/** Only the operator manages principals; local mode has its identity. */
export function mayManagePrincipals(peer: RpcPeer): boolean {
  return peer.clientId === 'service-operator';
}

const statuses: Readonly<Record<StoredPrincipal['status'], PrincipalStatus>> = {
  Active: PrincipalStatus.ACTIVE,
  Suspended: PrincipalStatus.SUSPENDED,
  Revoked: PrincipalStatus.REVOKED,
};

const defaultLimit = 500;
const maxLimit = 1_000;

export function principalRpc(deps: RevokePrincipalDeps): RpcHandlers<(typeof PrincipalService)['method']> {
  return {
    upsertPrincipal: async (request, context) => ({
      principalId: await upsert(
        deps,
        {
          clientId: request.clientId,
          serviceName: request.serviceName,
          scopes: [...new Set(request.scopes)],
          canSignSystem: request.canSignSystem,
        },
        context.peer.clientId,
      ),
    }),
    listPrincipals: async ({ serviceName, after, limit: requested }) => {
      const limit = requested === 0 ? defaultLimit : Math.min(requested, maxLimit);
      const found = await listPrincipals(deps.db.read, { serviceName, after, limit: limit + 1 });
      return { principals: found.slice(0, limit).map(present), complete: found.length <= limit };
    },
    revokePrincipal: async ({ clientId }, context) => ({
      revoked: await revokePrincipal(deps, clientId, context.peer.clientId),
    }),
  };
}

function present(principal: StoredPrincipal) {
  const { principalId, clientId, serviceName, canSignSystem, status } = principal;
  return {
    principalId,
    clientId,
    serviceName,
    scopes: [...principal.scopes],
    canSignSystem,
    status: statuses[status],
  };
}

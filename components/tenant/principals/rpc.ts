import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import type { PrincipalService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { type UpsertDeps, upsert } from './upsert.ts';

/** The operator, and local mode with its identity, keep the principals. */
export function mayUpsertPrincipals(peer: RpcPeer): boolean {
  return peer.clientId === 'service-operator';
}

export function principalRpc(deps: UpsertDeps): RpcHandlers<(typeof PrincipalService)['method']> {
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
  };
}

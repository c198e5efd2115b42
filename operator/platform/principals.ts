import { z } from 'zod';
import { serviceOf } from '#core/identity/services.ts';
import { type CallOptions, createRpcClient, type RpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { PrincipalService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import type { Installation } from '../api/installation.ts';
import type { ServiceSession, ServiceSessions } from './sessions.ts';
import { connectService, type Service } from './transport.ts';

/**
 * Records of validators at the services: a principal in the tenant service, which a member needs for tokens, and keys in
 * the wallet service.
 */
export interface Principals {
  /**
   * Ensures the principal of a member; an existing one is not written.
   *
   * Errors: the tenant service's; unavailable, timeout; NotLeader.
   */
  upsert(installation: Installation, clientId: string, signal?: AbortSignal): Promise<void>;
  /** Revokes the principal of a removed member and its tokens; a missing one is not an error. Throws like upsert. */
  revoke(installation: Installation, clientId: string, signal?: AbortSignal): Promise<void>;
  /**
   * Destroys the keys of a permanently removed member in the wallet service; missing keys are not an error.
   *
   * Errors: those of Service.call; NotLeader.
   */
  destroyKeys(installation: Installation, clientId: string, signal?: AbortSignal): Promise<void>;
  stop(): void;
}

type Client = RpcClient<typeof PrincipalService.method>;

/** Calls the guard right before the call. */
function callOptions(session: ServiceSession, signal: AbortSignal | undefined): CallOptions {
  return { timeoutMs: Math.min(10_000, session.guard()), signal };
}

/** A client for rare calls; no connection is kept open. */
function walletService({ installation, workload, token, guard }: ServiceSession): Service {
  return connectService({
    name: 'the wallet service',
    ...installation.endpoints.wallet.https,
    expect: serviceSpiffeId(installation.installation, 'service-wallet'),
    identity: workload,
    token,
    guard,
  });
}

/** Principals over gRPC with one client per installation; keys over HTTP. */
export function connectPrincipals(sessions: ServiceSessions): Principals {
  const clients = new Map<string, { readonly session: ServiceSession; readonly client: Client }>();
  const clientOf = async (installation: Installation) => {
    const session = await sessions.of(installation);
    const before = clients.get(installation.installation);
    if (before?.session === session) return before;
    before?.client.close();
    const client = createRpcClient(PrincipalService, {
      address: installation.endpoints.tenant.grpc,
      workload: session.workload,
      expect: serviceSpiffeId(installation.installation, 'service-tenant'),
      token: session.token,
      runtime: session.runtime,
    });
    const made = { session, client };
    clients.set(installation.installation, made);
    return made;
  };
  return {
    upsert: async (installation, clientId, signal) => {
      const { session, client } = await clientOf(installation);
      const scopes = [...serviceOf('validator').scopes];
      const principal = { clientId, serviceName: 'validator', scopes, canSignSystem: true };
      await client.upsertPrincipal(principal, callOptions(session, signal));
    },
    revoke: async (installation, clientId, signal) => {
      const { session, client } = await clientOf(installation);
      await client.revokePrincipal({ clientId }, callOptions(session, signal));
    },
    destroyKeys: async (installation, clientId, signal) => {
      const service = walletService(await sessions.of(installation));
      const path = `/api/internal/validator-keys/${clientId}`;
      try {
        await service.call({ method: 'DELETE', path, signal }, z.object({ destroyed: z.int() }));
      } finally {
        service.close();
      }
    },
    stop: () => {
      for (const { client } of clients.values()) client.close();
      clients.clear();
    },
  };
}

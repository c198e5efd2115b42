import type { Endpoint } from '#kit/config/config.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { AuditService, CredentialEventKind } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import type { StoredEvent } from '../audit/store.ts';
import type { PeerOptions } from './peer.ts';

const timeoutMs = 5_000;
const kinds = {
  issued: CredentialEventKind.ISSUED,
  statusChanged: CredentialEventKind.STATUS_CHANGED,
  notTrusted: CredentialEventKind.NOT_TRUSTED,
} as const;

/** The audit logs, which the tenant service keeps; connects on the first call. */
export function connectAudit(address: Endpoint, options: PeerOptions) {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-tenant');
  const client = createRpcClient(AuditService, { ...options, address, expect });
  return {
    send: async (events: readonly StoredEvent[]): Promise<void> => {
      const wire = events.map(({ id, kind, platformUserId = '', at, ...event }) => ({
        ...event,
        eventId: id,
        kind: kinds[kind],
        platformUserId,
        occurredAtMs: BigInt(at.getTime()),
      }));
      await client.recordCredentialEvents({ events: wire }, { timeoutMs });
    },
    close: () => client.close(),
  };
}

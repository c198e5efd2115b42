import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import { AuditService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import type { RefusalLogOptions } from './refusals/log.ts';

const reportTimeoutMs = 5_000;

interface ClientOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly token: () => Promise<string>;
}

/** Client of the audit logs in the tenant service, over gRPC; it connects on the first report. */
export function connectAudit(
  address: { readonly host: string; readonly port: number },
  options: ClientOptions,
): Pick<RefusalLogOptions, 'report'> & { close(): void } {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-tenant');
  const client = createRpcClient(AuditService, { ...options, address, expect });
  return {
    report: async (gathered) => {
      const refusals = gathered.map(({ walletAddress, occurredAtMs, ...one }) => ({
        ...one,
        resourceType: 'wallet',
        resourceId: walletAddress,
        occurredAtMs: BigInt(occurredAtMs),
      }));
      await client.reportRefusals({ refusals }, { timeoutMs: reportTimeoutMs });
    },
    close: () => client.close(),
  };
}

import { serviceOf } from '#core/identity/services.ts';
import { createServiceTokens } from '#kit/auth/auth.ts';
import { Cleanup, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { connectWorkload, serviceSpiffeId } from '#kit/workload/workload.ts';
import { PrincipalService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';

/** The operator's identity and the address of the tenant service. */
interface PrincipalOptions {
  readonly operatorSocket: string;
  readonly tenantGrpc: { readonly host: string; readonly port: number };
  readonly tenantMtls: { readonly host: string; readonly port: number };
  readonly runtime: Runtime;
}

/** Upserts a service principal for each validator, as the operator does in a cluster. */
export async function upsertValidators(
  options: PrincipalOptions,
  validatorIds: readonly string[],
): Promise<void> {
  const { operatorSocket, tenantGrpc, tenantMtls, runtime } = options;
  const { log, clock, installation } = runtime;
  const cleanup = new Cleanup();
  try {
    const workload = await connectWorkload({ socket: operatorSocket, log, clock });
    cleanup.add('workload', () => workload.stop());
    const token = createServiceTokens({
      workload,
      endpoint: tenantMtls,
      clientId: 'service-operator',
      clock,
      log,
    });
    const client = createRpcClient(PrincipalService, {
      address: tenantGrpc,
      workload,
      expect: serviceSpiffeId(installation, 'service-tenant'),
      token,
      runtime,
    });
    cleanup.add('client', () => client.close());
    const { scopes, signsForSystem } = serviceOf('validator');
    for (const clientId of validatorIds) {
      await client.upsertPrincipal({
        clientId,
        serviceName: 'validator',
        scopes: [...scopes],
        canSignSystem: signsForSystem === true,
      });
    }
  } finally {
    await cleanup.run(log);
  }
}

import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient, type RpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';

/** The identity under which this validator calls others. */
export interface CallerIdentity {
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly token?: (() => Promise<string>) | undefined;
}

/** A service or another validator: its client id and the address of its gRPC listener. */
interface CalledPeer {
  readonly clientId: string;
  readonly address: string | { readonly host: string; readonly port: number };
  /** Whether its unary calls share a stream: they are many and small. */
  readonly multiplexed?: boolean;
}

/** A gRPC client whose server must prove the SPIFFE identity of the client id. */
export function connectTo<S extends GenServiceMethods>(
  service: GenService<S>,
  { clientId, address, multiplexed }: CalledPeer,
  { runtime, workload, token }: CallerIdentity,
): RpcClient<S> {
  const expect = serviceSpiffeId(workload.trustDomain, clientId);
  return createRpcClient(service, { address, workload, token, runtime, expect, multiplexed });
}

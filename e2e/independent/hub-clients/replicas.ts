import { freePorts } from '../../../components/standalone/state/ports.ts';
import { metricOf } from '../../harness/ops.ts';
import { type OwnProcess, type ProcessStart, startLike, startOf } from '../../harness/running-process.ts';
import type { LocalState } from '../../harness/system.ts';

/** A register service behind a gateway of its own. */
export interface Replica {
  readonly gatewayPort: number;
  /** Connections that it opened over a transport since its start. */
  opened(transport: string): Promise<number>;
  /** Sends SIGKILL to the register service. */
  kill(): Promise<void>;
  /** Starts the register service again. */
  restart(): Promise<void>;
  /** Ends both processes. */
  stop(): Promise<void>;
}

/** Starts one more register service and a gateway for it, beside those of a local mode of processes. */
export async function startReplica({ processes }: LocalState): Promise<Replica> {
  const startOfOne = (name: string): ProcessStart => startOf(processes.find((one) => one.name === name)?.pid);
  const [start, gatewayStart] = [startOfOne('register'), startOfOne('gateway')];
  const [ops, https, grpc, gatewayOps, gatewayPort] = (await freePorts(5)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const ports = {
    CHANCERY_OPS_PORT: String(ops),
    CHANCERY_HTTPS_PORT: String(https),
    CHANCERY_GRPC_PORT: String(grpc),
  };
  let service: OwnProcess = await startLike(start, ports);
  const gateway = await startLike(gatewayStart, {
    CHANCERY_OPS_PORT: String(gatewayOps),
    CHANCERY_GATEWAY_PORT: String(gatewayPort),
    CHANCERY_REGISTER_HTTPS: `127.0.0.1:${https}`,
  });
  return {
    gatewayPort,
    opened: (transport) =>
      metricOf(`127.0.0.1:${ops}`, 'chancery_register_hub_connections_total', `transport="${transport}"`),
    kill: () => service.kill(),
    restart: async () => {
      service = await startLike(start, ports);
    },
    stop: async () => {
      await gateway.kill();
      await service.kill();
    },
  };
}

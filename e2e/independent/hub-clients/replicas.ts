import { metricOf } from '../../harness/ops.ts';
import {
  GATEWAY_PORTS,
  type OwnProcess,
  type ProcessStart,
  SERVICE_PORTS,
  startLike,
  startOf,
  startOnFreePorts,
} from '../../harness/running-process.ts';
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
  const placed = await startOnFreePorts(start, SERVICE_PORTS);
  const { ports } = placed;
  let service: OwnProcess = placed;
  const gateway = await startOnFreePorts(gatewayStart, GATEWAY_PORTS, () => ({
    CHANCERY_REGISTER_HTTPS: `127.0.0.1:${ports['CHANCERY_HTTPS_PORT']}`,
  }));
  const ops = ports['CHANCERY_OPS_PORT'];
  return {
    gatewayPort: Number(gateway.ports['CHANCERY_GATEWAY_PORT']),
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

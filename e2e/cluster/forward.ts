import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A port of this machine that leads to a Service. */
export interface Forward {
  /** host:port */
  readonly address: string;
  stop(): Promise<void>;
}

/** kubectl port-forward to a port of a Service; resolves when it listens. */
export async function forward(namespace: string, service: string, port: number): Promise<Forward> {
  const args = ['port-forward', '-n', namespace, `service/${service}`, `:${port}`];
  const child = spawn('kubectl', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const local = /127\.0\.0\.1:(\d+)/.exec(line)?.[1];
  if (local === undefined) throw new Error(`kubectl port-forward says: ${line}`);
  return {
    address: `127.0.0.1:${local}`,
    stop: async () => {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

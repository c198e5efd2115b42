import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A local port that is forwarded into the cluster. */
export interface Forward {
  /** host:port */
  readonly address: string;
  stop(): Promise<void>;
}

/** Starts kubectl port-forward to a Service, or to an object with its kind (`pod/main-0`); resolves when it listens. */
export async function forward(namespace: string, name: string, port: number): Promise<Forward> {
  const target = name.includes('/') ? name : `service/${name}`;
  const args = ['port-forward', '-n', namespace, target, `:${port}`];
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

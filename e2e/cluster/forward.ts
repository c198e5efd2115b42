import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A port of this machine that leads into the cluster. */
export interface Forward {
  /** host:port */
  readonly address: string;
  stop(): Promise<void>;
}

/** kubectl port-forward to a port of a Service, or of what is named with its kind (`pod/main-0`); resolves when it listens. */
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

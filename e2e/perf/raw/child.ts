import { fork } from 'node:child_process';

/** A raw program in a process of its own. */
export interface RawProgram {
  readonly pid: number;
  /** Its first message: its address. */
  readonly said: string;
  /** Sends a message and waits for the answer. */
  tell(message: string): Promise<string>;
  /** Sends a message that has no answer. */
  send(message: string): void;
  stop(): Promise<void>;
}

/** Starts a raw program with its settings as JSON in the first argument. */
export async function startRaw(module: URL, settings: unknown): Promise<RawProgram> {
  const child = fork(module, [JSON.stringify(settings)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const said = await new Promise<string>((resolve, reject) => {
    child.once('message', (message) => resolve(String(message)));
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${module.pathname} ended with ${code}`)));
  });
  return {
    pid: child.pid ?? 0,
    said,
    tell: (message) =>
      new Promise((resolve) => {
        child.once('message', (answer) => resolve(String(answer)));
        child.send(message);
      }),
    send: (message) => void child.send(message),
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { until } from './wait.ts';

/** Command line and environment of a process. Linux only. */
export interface ProcessStart {
  readonly program: string;
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Command line and environment of a running process, without the IPC channel to its parent. */
export function startOf(pid: number | undefined): ProcessStart {
  const read = (file: string) => readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0').filter(Boolean);
  const env = Object.fromEntries(
    read('environ')
      .filter((each) => !each.startsWith('NODE_CHANNEL_'))
      .map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]),
  );
  const [program = '', ...words] = read('cmdline');
  return { program, words, env };
}

/** A process that a test started itself. */
export interface OwnProcess {
  /** Its output so far. */
  output(): string;
  /** Sends SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>;
}

/** Starts a component as another process was started, with some settings changed; resolves when it is ready. */
export async function startLike(
  { program, words, env: given }: ProcessStart,
  changes: Readonly<Record<string, string>>,
): Promise<OwnProcess> {
  const env = { ...given, ...changes };
  const child: ChildProcess = spawn(program, words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (bytes: Buffer) => {
      said += bytes.toString();
    });
  }
  const kill = (): Promise<void> => {
    child.kill('SIGKILL');
    return ended;
  };
  try {
    await until('the process is ready', 120_000, async () => {
      const answer = await fetch(`http://127.0.0.1:${env['CHANCERY_OPS_PORT']}/ready`).catch(() => undefined);
      return answer?.status === 200 ? true : undefined;
    });
  } catch (cause) {
    await kill();
    throw new Error(`the process did not become ready:\n${said}`, { cause });
  }
  return { output: () => said, kill };
}

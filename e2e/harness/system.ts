import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { metricOf } from './ops.ts';

const localState = z.object({
  gatewayUrl: z.string(),
  mtlsTokenUrl: z.string(),
  internalTokenUrl: z.string(),
  adminEmail: z.string(),
  adminPasswordFile: z.string(),
  serviceSecretsDir: z.string(),
  installation: z.string(),
  spiffeSockets: z.record(z.string(), z.string()),
  validators: z.array(
    z.object({ validatorId: z.string(), grpc: z.string(), https: z.string(), ops: z.string() }),
  ),
  processes: z.array(z.object({ name: z.string(), pid: z.number() })),
});

/** Content of the `local.json` of a running local mode. */
export type LocalState = z.output<typeof localState>;

/** Reads a file in the form of `local.json`. */
export function readState(path: string): LocalState {
  return localState.parse(JSON.parse(readFileSync(path, 'utf8')));
}

/** Local mode as a child process. */
export interface LocalSystem {
  readonly state: LocalState;
  readonly startedInMs: number;
  readonly output: () => string;
  /** Sends Ctrl-C; resolves with the exit code and the duration of stopping. */
  stop(): Promise<{ readonly code: number | null; readonly tookMs: number }>;
  /** Sends SIGKILL to every process of the system at once; resolves when they have ended. */
  kill(): Promise<void>;
  /** Sends SIGKILL to one process by its name in `local.json`. */
  killOne(name: string): void;
  /** The present content of `local.json`. */
  current(): LocalState;
  /** Restarts a validator that ended, with the command for people; resolves when it is ready. */
  again(name: string): Promise<void>;
}

export interface SystemOptions {
  readonly dataDir: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly deadlineMs?: number;
  /** User and group id to run under; only root can choose. */
  readonly account?: number;
  /** Root of the source tree to run; this one if absent. */
  readonly source?: string;
}

const ownSource = fileURLToPath(new URL('../..', import.meta.url));

function mainOf({ source = ownSource }: SystemOptions): string {
  return join(source, 'components/standalone/main.ts');
}

/** Starts local mode on any free port and waits until it reports that it is ready. */
export async function startSystem(options: SystemOptions): Promise<LocalSystem> {
  const startedAt = performance.now();
  const localJson = `${options.dataDir}/local.json`;
  rmSync(localJson, { force: true });
  const child = spawn(
    process.execPath,
    [mainOf(options), '--data', options.dataDir, '--port', '0', ...(options.args ?? [])],
    {
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(options.account === undefined ? {} : { uid: options.account, gid: options.account }),
    },
  );
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => lines.push(line));
  }
  const output = (): string => lines.join('\n');
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  await ready({ child, localJson, output, ended, deadlineMs: options.deadlineMs ?? 60_000 });
  const read = (): LocalState => readState(localJson);
  const state = read();
  const current = (): LocalState => (existsSync(localJson) ? read() : state);
  return {
    state,
    startedInMs: performance.now() - startedAt,
    output,
    stop: async () => {
      const different = await findDisagreements(options.dataDir, current());
      const stopped = await stop(child, ended);
      if (different.length > 0)
        throw new Error(`keys disagree with the register service: ${different.join()}`);
      return stopped;
    },
    kill: () => kill(current(), ended),
    killOne: (name) => killOne(current(), name),
    current,
    again: (name) => startAgain(options, name),
  };
}

interface Starting {
  readonly child: ChildProcess;
  readonly localJson: string;
  readonly output: () => string;
  readonly ended: Promise<number | null>;
  readonly deadlineMs: number;
}

async function ready({ child, localJson, output, ended, deadlineMs }: Starting): Promise<void> {
  let gone = false;
  void ended.then(() => {
    gone = true;
  });
  const deadline = performance.now() + deadlineMs;
  while (!existsSync(localJson) || !output().includes('Chancery is ready')) {
    if (gone || performance.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`local mode did not become ready:\n${output()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** With the key filters of validators in shadow: the validators and logs that counted a different answer. */
async function findDisagreements(dataDir: string, { validators }: LocalState): Promise<string[]> {
  if (process.env['CHANCERY_KEY_FILTERS'] !== 'shadow') return [];
  const name = 'chancery_validator_key_filter_disagreements_total';
  const counted = validators.map(async ({ validatorId, ops }) => {
    const count = await metricOf(ops, name).catch(() => 0);
    return count > 0 ? [`${validatorId} ${count}`] : [];
  });
  const logs = globSync('**/*.log', { cwd: dataDir }).filter((path) =>
    readFileSync(join(dataDir, path), 'utf8').includes('call a transaction new that is not'),
  );
  return [...(await Promise.all(counted)).flat(), ...logs];
}

async function stop(
  child: ChildProcess,
  ended: Promise<number | null>,
): Promise<{ code: number | null; tookMs: number }> {
  const startedAt = performance.now();
  child.kill('SIGINT');
  const code = await ended;
  return { code, tookMs: performance.now() - startedAt };
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function kill(state: LocalState, ended: Promise<number | null>): Promise<void> {
  for (const { pid } of state.processes) {
    if (alive(pid)) {
      process.kill(pid, 'SIGKILL');
    }
  }
  await ended;
  const deadline = performance.now() + 20_000;
  while (state.processes.some(({ pid }) => alive(pid))) {
    if (performance.now() > deadline) {
      throw new Error('a killed process is still there');
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function killOne(state: LocalState, name: string): void {
  const found = state.processes.find((one) => one.name === name);
  if (found === undefined) {
    throw new Error(`no process ${name} in local.json`);
  }
  process.kill(found.pid, 'SIGKILL');
}

async function startAgain(options: SystemOptions, name: string): Promise<void> {
  const child = spawn(process.execPath, [mainOf(options), '--data', options.dataDir, '--again', name], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => lines.push(line));
  }
  const code = await new Promise<number | null>((resolve) =>
    child.once('close', (status) => resolve(status)),
  );
  if (code !== 0) throw new Error(`${name} did not start again:\n${lines.join('\n')}`);
}

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

/** Output and exit code of a program. */
export interface ProgramResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  /** Standard input. */
  readonly input?: string;
  /** 60 000 when absent. */
  readonly timeoutMs?: number;
  /** Added to the environment of this process; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Runs a program to its end. A failure does not throw. */
export function run(
  program: string,
  args: readonly string[],
  options: RunOptions | string = {},
): Promise<ProgramResult> {
  const { input = '', timeoutMs = 60_000, env } = typeof options === 'string' ? { input: options } : options;
  return new Promise((resolve) => {
    const child = execFile(
      program,
      [...args],
      { timeout: Math.ceil(timeoutMs), maxBuffer: 32_000_000, env: { ...process.env, ...env } },
      (error, out, err) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
        resolve({ code, out, err: err === '' && error !== null ? error.message : err });
      },
    );
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

/** Runs a program that must succeed; returns its output. */
export async function must(
  program: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const { code, out, err } = await run(program, args, options);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}:\n${err}${out}`);
  return out;
}

/** Runs kubectl, which must succeed; returns its output. */
export function kubectl(...args: readonly string[]): Promise<string> {
  return must('kubectl', args, { timeoutMs: 180_000 });
}

/** Applies objects. */
export async function apply(namespace: string, ...objects: readonly object[]): Promise<void> {
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
  await must('kubectl', ['apply', '-n', namespace, '-f', '-'], { input });
}

/** Retries until the check succeeds; throws its last error after 60 s. */
export async function eventually<T>(check: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await pause(100);
    }
  }
}

/** An answer of the API server. */
export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface ApiServer {
  /** Address of the proxy, which needs no credentials. */
  readonly url: string;
  readonly request: (method: string, path: string, body?: object, type?: string) => Promise<Answer>;
  readonly stop: () => Promise<void>;
}

/** Opens the API server of KUBECONFIG through a proxy, without a process per call. */
export async function openApiServer(): Promise<ApiServer> {
  const child = spawn('kubectl', ['proxy', '--port=0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, 'line')) as [string];
  const port = /:(\d+)$/.exec(line)?.[1];
  if (port === undefined) throw new Error(`kubectl proxy says: ${line}`);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    request: async (method, path, body, type = 'application/json') => {
      const answer = await fetch(`${url}${path}`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': type } }),
      });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    },
    stop: async () => {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

/** Impersonation options of kubectl. */
export function as(user: string, ...groups: readonly string[]): readonly string[] {
  return [`--as=${user}`, ...groups.map((group) => `--as-group=${group}`)];
}

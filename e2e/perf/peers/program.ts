import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('go/', import.meta.url));

/** Paths of the programs of the peers. */
export interface Programs {
  readonly cometbft: string;
  readonly tessera: string;
}

/** Builds the programs into a folder; returns Go's output when they cannot be built here. */
export function buildPrograms(into: string): Programs | string {
  try {
    execFileSync('go', ['build', '-C', folder, '-o', `${into}/`, './...'], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return 'code' in error && error.code === 'ENOENT' ? 'there is no Go here' : error.message;
  }
  return { cometbft: `${into}/cometbft`, tessera: `${into}/tessera` };
}

/** A running server program. */
export interface Served {
  readonly pid: number;
  /** Its first line. */
  readonly said: string;
  stop(): Promise<void>;
}

/** Starts a program and waits for its first line; its error output is in the error when it ends too early. */
export async function serve(program: string, args: readonly string[]): Promise<Served> {
  // It ends when its input does, so it ends with the benchmark in any case.
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  const faults: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => {
    faults.push(chunk.toString());
    faults.splice(0, faults.length - 20);
  });
  const said = once(createInterface(child.stdout), 'line').then(([line]) => String(line));
  const early = ended.then(([code]): string => {
    throw new Error(`${program} ended with ${code}: ${faults.join('')}`);
  });
  const line = await Promise.race([said, early]);
  early.catch(() => undefined);
  return {
    pid: child.pid ?? 0,
    said: line,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Output of a program that ends by itself. */
export async function run(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [said, faults]: Buffer[][] = [[], []];
  child.stdout.on('data', (chunk: Buffer) => said?.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => faults?.push(chunk));
  const [code] = await once(child, 'close');
  if (code === 0) return Buffer.concat(said ?? []).toString();
  throw new Error(`${program} ${args[0]} ended with ${code}: ${Buffer.concat(faults ?? [])}`);
}

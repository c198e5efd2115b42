import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('go/', import.meta.url));

/** Where the programs of the peers are once they are built. */
export interface Programs {
  readonly cometbft: string;
  readonly tessera: string;
}

/** Builds them into a folder; Go's own words when they cannot be built here. */
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

/** A program that serves. */
export interface Served {
  readonly pid: number;
  /** Its first line. */
  readonly said: string;
  stop(): Promise<void>;
}

/** Starts a program and waits for its first line; what it says of faults is shown when it ends too early. */
export async function serve(program: string, args: readonly string[]): Promise<Served> {
  // it ends when its input does: whatever ended the benchmark ends it, too
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

/** What a program prints that ends by itself. */
export async function run(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [said, faults]: Buffer[][] = [[], []];
  child.stdout.on('data', (chunk: Buffer) => said?.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => faults?.push(chunk));
  const [code] = await once(child, 'close');
  if (code === 0) return Buffer.concat(said ?? []).toString();
  throw new Error(`${program} ${args[0]} ended with ${code}: ${Buffer.concat(faults ?? [])}`);
}

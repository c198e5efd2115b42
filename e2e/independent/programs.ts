import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';

/** Checks of an ended program. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
}

/** Exit code and output of a program. */
export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

const folder = fileURLToPath(new URL('.', import.meta.url));

/** The module of the programs in Go. */
export const goFolder = join(folder, 'go');

const ownPython = fileURLToPath(new URL('../../dist/venv/bin/python3', import.meta.url));

/** Runs a program to its end; its errors go to this process's own. */
export function execute(command: string, args: readonly string[], input = ''): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.on('error', reject);
    child.stdin.end(input);
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.once('error', reject);
    child.once('exit', (code) => resolve({ code, output: Buffer.concat(chunks).toString() }));
  });
}

export function hasGo(): boolean {
  return spawnSync('go', ['version'], { stdio: 'ignore' }).status === 0;
}

/** Runs a Python program of this folder to its end, with the packages of `dist/venv` where it exists. */
export function python(name: string, args: readonly string[], input = ''): Promise<Ended> {
  const interpreter = existsSync(ownPython) ? ownPython : 'python3';
  return execute(interpreter, ['-B', join(folder, name), ...args], input);
}

/** The checks of a Python program of this folder. */
export async function script(name: string, args: readonly string[]): Promise<Counts> {
  return countsOf(name, await python(name, args));
}

/** The checks that a program counted; a program that exits with an error and counted none has failed. */
export function countsOf(name: string, { code, output }: Ended): Counts {
  process.stdout.write(`\n${name}\n${output}`);
  const counted = /^(\d+) passed, (\d+) failed$/m.exec(output);
  const counts = { passed: Number(counted?.[1] ?? 0), failed: Number(counted?.[2] ?? 1) };
  return code === 0 || counts.failed > 0 ? counts : { ...counts, failed: 1 };
}

/** Prints checks under a title and counts them. */
export function countChecks(title: string, checks: Readonly<Record<string, boolean>>): Counts {
  process.stdout.write(`\n${title}\n`);
  for (const [what, holds] of Object.entries(checks))
    process.stdout.write(`${holds ? 'ok ' : 'NOT'} ${what}\n`);
  const passed = Object.values(checks).filter(Boolean).length;
  return { passed, failed: Object.keys(checks).length - passed };
}

/** What could not be judged is one failed check. */
export const failureOf =
  (title: string) =>
  (error: unknown): Counts => {
    process.stdout.write(`\n${title}\nNOT ${inspect(error)}\n`);
    return { passed: 0, failed: 1 };
  };

/** Writes the report of a suite, prints its sum and sets the exit code: 1 when a check failed, or when none ran. */
export function closeSuite(suite: string, all: readonly Counts[]): void {
  const passed = all.reduce((sum, counts) => sum + counts.passed, 0);
  const failed = all.reduce((sum, counts) => sum + counts.failed, 0);
  const reports = process.env['CHANCERY_TEST_REPORTS'];
  if (reports !== undefined) {
    mkdirSync(reports, { recursive: true });
    writeFileSync(join(reports, `${suite}.json`), JSON.stringify({ suite, passed, failed }));
  }
  process.stdout.write(`\n${suite}: ${passed} passed, ${failed} failed\n`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
}

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A running browser without a window. */
export interface Chromium {
  /** What it wrote so far. */
  output(): string;
  /** Ends it with its child processes, and deletes its profile. */
  stop(): Promise<void>;
}

const options = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // containers have a small /dev/shm
  '--disable-dev-shm-usage',
  '--enable-logging=stderr',
];

/**
 * Opens a page in Chromium with a new profile.
 * @throws Error when Chromium cannot be started
 */
export async function startChromium(url: string): Promise<Chromium> {
  const profile = mkdtempSync(join(tmpdir(), 'chancery-chromium-'));
  // a process group of its own, because Debian's command is a script and the browser has children
  const child = spawn('chromium', [...options, `--user-data-dir=${profile}`, url], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      said = `${said}${bytes}`.slice(-20_000);
    });
  }
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  try {
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
  } catch (cause) {
    rmSync(profile, { recursive: true, force: true });
    throw new Error("Chromium does not start; Debian's package is `chromium`", { cause });
  }
  const stop = async () => {
    killGroup(child);
    await ended;
    // children of a killed browser may write for a moment
    rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  return { output: () => said, stop };
}

function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  process.kill(-pid, 'SIGKILL');
}

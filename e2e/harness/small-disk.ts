import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A file system of a few MiB that a test fills and empties. */
export interface SmallDisk {
  readonly path: string;
  /** Fills the free space. */
  fill(): void;
  /** Frees it again. */
  free(): void;
}

export interface SmallDisks {
  readonly disks: readonly [SmallDisk, SmallDisk];
  close(): void;
}

const given = 'CHANCERY_TEST_SMALL_DISK';
const sizeMiB = 8;
const script =
  'for d in "$@"; do mount -t tmpfs -o size=8m,mode=0700 small "$d" || exit 1; done; echo ready; exec cat';

/**
 * Opens two small file systems: the two directories that CHANCERY_TEST_SMALL_DISK names, separated by a comma, or two
 * of memory in a mount namespace of their own, which root may create, and others where user namespaces are allowed.
 * They end with the process that created them. Undefined, with a line that reports it, where neither works.
 */
export async function openSmallDisks(): Promise<SmallDisks | undefined> {
  const [one, two] = (process.env[given] ?? '').split(',').filter((path) => path !== '');
  if (one !== undefined && two !== undefined) {
    return { disks: [smallDisk(one), smallDisk(two)], close: () => {} };
  }
  for (const flags of [['--mount'], ['--user', '--map-root-user', '--mount']]) {
    const made = await makeDisks(flags);
    if (made !== undefined) return made;
  }
  process.stdout.write(
    `SKIPPED: no small file system can be made here (unshare and mount of tmpfs); name two directories in ${given}\n`,
  );
  return undefined;
}

async function makeDisks(flags: readonly string[]): Promise<SmallDisks | undefined> {
  const root = mkdtempSync(join(tmpdir(), 'chancery-small-'));
  const paths = [join(root, 'one'), join(root, 'two')] as const;
  for (const path of paths) mkdirSync(path);
  const keeper = spawn('unshare', [...flags, 'sh', '-c', script, 'sh', ...paths], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const close = () => {
    keeper.stdin.destroy();
    keeper.kill('SIGKILL');
    rmSync(root, { recursive: true, force: true });
  };
  if (!(await saysReady(keeper))) {
    close();
    return undefined;
  }
  const inside = (path: string) => smallDisk(join(`/proc/${keeper.pid}/root`, path));
  return { disks: [inside(paths[0]), inside(paths[1])], close };
}

function saysReady(keeper: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    keeper.once('error', () => resolve(false));
    keeper.once('exit', () => resolve(false));
    keeper.stdout?.once('data', () => resolve(true));
  });
}

function smallDisk(path: string): SmallDisk {
  const filler = join(path, 'filler');
  return {
    path,
    fill() {
      const file = openSync(filler, 'w');
      try {
        const block = Buffer.alloc(4096);
        for (let blocks = 0; blocks <= (sizeMiB * 1024 * 1024) / block.length; blocks += 1) {
          if (!isWritten(file, block)) return;
        }
        throw new Error(`${path} holds more than ${sizeMiB} MiB`);
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(filler, { force: true }),
  };
}

function isWritten(file: number, block: Buffer): boolean {
  try {
    return writeSync(file, block) === block.length;
  } catch {
    return false;
  }
}

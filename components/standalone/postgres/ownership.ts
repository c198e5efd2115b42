import {
  closeSync,
  constants,
  existsSync,
  lchownSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from 'node:fs';
import { join } from 'node:path';
import { AppError } from '#core/errors/errors.ts';

const ROOT = 0;

/**
 * Makes an account the owner of a data directory and of everything in it; only root calls this. The directory itself
 * is another account's from the first step to the last, so that an interrupted change is seen and finished later.
 *
 * Errors: conflict/EMBEDDED_POSTGRES_LOCKED while a server works in the directory,
 * internal/EMBEDDED_POSTGRES_FAILED where the system refuses the change.
 */
export function ownDataDirectory(dataDir: string, account: number | undefined): void {
  const owner = account ?? ROOT;
  const directory = realpathSync(dataDir);
  if (owner === ROOT && lstatSync(directory).uid === ROOT) return;
  if (serverWorksIn(directory)) {
    throw new AppError(
      'conflict',
      'EMBEDDED_POSTGRES_LOCKED',
      `another PostgreSQL server uses ${dataDir}; stop it first`,
    );
  }
  try {
    if (owner !== ROOT) own(directory, owner);
    ownBelow(directory, owner);
    own(directory, owner);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : 'unknown reason';
    const message = `${dataDir} cannot be given to account ${owner}: ${text}`;
    throw new AppError('internal', 'EMBEDDED_POSTGRES_FAILED', message, { cause });
  }
}

function own(path: string, owner: number): void {
  const { uid, gid } = lstatSync(path);
  if (uid !== owner || gid !== owner) lchownSync(path, owner, owner);
}

/** Walks by open directories: nobody who writes there can lead root's change of owner elsewhere by a symbolic link. */
function ownBelow(directory: string, owner: number): void {
  const held = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const here = `/proc/self/fd/${held}`;
    for (const entry of readdirSync(here, { withFileTypes: true })) {
      const path = join(here, entry.name);
      own(path, owner);
      if (entry.isDirectory()) ownBelow(path, owner);
    }
  } finally {
    closeSync(held);
  }
}

/** PostgreSQL judges the lock file of another account's server as stale; the process it names tells. */
function serverWorksIn(directory: string): boolean {
  const lock = join(directory, 'postmaster.pid');
  if (!existsSync(lock)) return false;
  const [pid = ''] = readFileSync(lock, 'utf8').split('\n');
  try {
    return readlinkSync(`/proc/${Number(pid)}/cwd`) === directory;
  } catch {
    return false;
  }
}

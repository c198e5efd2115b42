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
import { localError } from '../errors.ts';

const ROOT = 0;

/**
 * Makes an account the owner of a data directory and of everything in it; only root calls this. The directory itself is
 * owned by the other account while the change runs, so that an interrupted change is detected and completed later.
 *
 * Errors: conflict/EMBEDDED_POSTGRES_LOCKED while a server works in the directory, internal/EMBEDDED_POSTGRES_FAILED
 * where the system refuses the change.
 */
export function ownDataDirectory(dataDir: string, account: number | undefined): void {
  const owner = account ?? ROOT;
  const directory = realpathSync(dataDir);
  if (owner === ROOT && lstatSync(directory).uid === ROOT) return;
  if (serverWorksIn(directory)) {
    throw localError('EMBEDDED_POSTGRES_LOCKED', `another PostgreSQL server uses ${dataDir}; stop it first`);
  }
  try {
    if (owner !== ROOT) own(directory, owner);
    ownBelow(directory, owner);
    own(directory, owner);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : 'unknown reason';
    const message = `${dataDir} cannot be given to account ${owner}: ${text}`;
    throw localError('EMBEDDED_POSTGRES_FAILED', message, { cause });
  }
}

function own(path: string, owner: number): void {
  const { uid, gid } = lstatSync(path);
  if (uid !== owner || gid !== owner) lchownSync(path, owner, owner);
}

/** Walks by open directories, so that no writer can redirect root's change of owner by a symbolic link. */
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

/**
 * Whether a server works in the directory. PostgreSQL treats the lock file of another account's server as stale, so the
 * process that it names is checked.
 */
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

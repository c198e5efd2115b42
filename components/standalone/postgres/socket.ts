import { lstatSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { localError } from '../errors.ts';
import { answers } from '../state/lock.ts';

// The name that clients of port 5432 look for.
const SOCKET_NAME = '.s.PGSQL.5432';

/**
 * Links the socket of a server that listens in its data directory to where clients look for it; returns the function
 * that removes the link. A server under another account cannot enter the caller's directory of sockets.
 */
export function linkSocket(socketDir: string, dataDir: string): () => void {
  const [link, socket] = [join(socketDir, SOCKET_NAME), join(dataDir, SOCKET_NAME)];
  rmSync(link, { force: true });
  symlinkSync(socket, link);
  return () => {
    if (linksTo(link, socket)) rmSync(link, { force: true });
  };
}

/** Refuses with conflict/EMBEDDED_POSTGRES_LOCKED while a server answers where clients would look for another one. */
export async function checkSocketFree(socketDir: string): Promise<void> {
  const path = join(socketDir, SOCKET_NAME);
  if (!(await answers(path))) return;
  throw localError(
    'EMBEDDED_POSTGRES_LOCKED',
    `another PostgreSQL server listens in ${socketDir}; stop it first`,
  );
}

function linksTo(link: string, socket: string): boolean {
  const found = lstatSync(link, { throwIfNoEntry: false });
  return found?.isSymbolicLink() === true && readlinkSync(link) === socket;
}

import { rmSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { localError } from '../errors.ts';

/**
 * Locks a data directory for one process by a listening socket. The system closes it however the process ends, so no
 * stale lock remains after a crash. Throws `conflict` when another process holds it.
 */
export async function lockDirectory(socketDir: string, dataDir: string): Promise<() => Promise<void>> {
  const path = join(socketDir, 'lock.sock');
  if (await answers(path)) {
    throw localError(
      'DATA_DIRECTORY_IN_USE',
      `${dataDir} is in use by a running Chancery; stop it or pass --data DIR`,
    );
  }
  rmSync(path, { force: true });
  const server = await listen(path);
  return () => new Promise((resolve) => server.close(() => resolve()));
}

/** Whether a process listens on a unix socket. */
export function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    server.listen(path, () => resolve(server));
    server.unref();
  });
}

import { rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { localError } from '../errors.ts';

/** Executes a command line and resolves to one line; an error becomes the reason that is sent. */
type ExecuteCommand = (line: string) => Promise<string>;

const longestLine = 256;

const pathOf = (socketDir: string): string => join(socketDir, 'control.sock');

/**
 * Accepts commands of this user, a line each, on a socket in the private directory. Returns the function that stops it.
 */
export async function serveControl(socketDir: string, execute: ExecuteCommand): Promise<() => Promise<void>> {
  const path = pathOf(socketDir);
  rmSync(path, { force: true });
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => socket.destroy());
    onLine(socket, (line) => void answer(socket, line, execute));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  return () =>
    new Promise((resolve) => {
      for (const socket of open) socket.destroy();
      server.close(() => resolve());
    });
}

/** Reads the first line of a connection. Connection errors are handled by the socket's own event. */
function onLine(socket: Socket, take: (line: string) => void): void {
  createInterface({ input: socket })
    .on('error', () => undefined)
    .once('line', take);
}

async function answer(socket: Socket, line: string, execute: ExecuteCommand): Promise<void> {
  try {
    if (line.length > longestLine) throw localError('INVALID_REQUEST', 'the line is too long');
    socket.end(`ok ${await execute(line)}\n`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    socket.end(`no ${reason.split('\n', 1)[0]}\n`);
  }
}

/**
 * Sends one command to the running Chancery of a data directory and returns its answer.
 * @throws AppError unavailable NOT_RUNNING when none runs there, conflict COMMAND_REFUSED with the reason
 */
export function askControl(socketDir: string, dataDir: string, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(pathOf(socketDir));
    const none = (cause?: unknown) =>
      reject(localError('NOT_RUNNING', `no Chancery runs on ${dataDir}`, { cause }));
    socket.once('error', none);
    socket.once('close', () => none());
    onLine(socket, (reply) => {
      if (reply.startsWith('ok ')) resolve(reply.slice(3));
      else reject(localError('COMMAND_REFUSED', reply.slice(3)));
    });
    socket.once('connect', () => socket.write(`${line}\n`));
  });
}

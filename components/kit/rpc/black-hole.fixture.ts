import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** An address of 127.0.0.1 at which no call succeeds. */
export interface BlackHole {
  readonly port: number;
  close(): void;
}

/** Accepts connections and never sends a byte, like a process that hangs. */
export async function muteServer(): Promise<BlackHole> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * Sends nothing over the first connection, as when packets go to a deleted pod; later connections reach the same port
 * of another host.
 */
export async function stuckOnce(
  at: { readonly host: string; readonly port: number },
  host: string,
): Promise<BlackHole> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const isFirst = sockets.size === 0;
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    if (isFirst) return;
    const onward = connect(at.port, host);
    onward.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
    socket.pipe(onward).pipe(socket);
  });
  server.listen(at.port, at.host);
  await once(server, 'listening');
  return {
    port: at.port,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const listener = `
  const server = require('node:net').createServer();
  server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => console.log(server.address().port));`;
const mostConnections = 50;

/** Answers no SYN, like the address of a deleted pod: a stopped process with a full connection queue. */
export async function deafAddress(): Promise<BlackHole> {
  const child = spawn(process.execPath, ['--eval', listener], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  const port = Number(String(line));
  child.kill('SIGSTOP');
  const filling: Socket[] = [];
  const close = () => {
    for (const socket of filling) socket.destroy();
    child.kill('SIGKILL');
  };
  while (filling.length < mostConnections) {
    const socket = connect(port, '127.0.0.1');
    filling.push(socket);
    if (!(await connects(socket))) return { port, close };
  }
  close();
  throw new Error(`port ${port} takes any number of connections`);
}

async function connects(socket: Socket): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.on('error', () => resolve(false));
  socket.once('connect', () => resolve(true));
  const timer = setTimeout(() => resolve(false), 500);
  const connected = await promise;
  clearTimeout(timer);
  return connected;
}

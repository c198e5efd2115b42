import { createServer, type Server } from 'node:net';
import { localError } from '../errors.ts';

/** Above the well-known ports and below the ephemeral ports of systems. */
const range = { first: 20_000, end: 32_000 } as const;
/**
 * Step between start positions: processes that start together search in different ranges, because a port is bound a
 * little after it was found.
 */
const block = 100;

/**
 * Finds free ports on 127.0.0.1. All are held until all are found, so they are distinct, and different from the `given`
 * one, which has to be free too. Another process may bind one of them before the caller does.
 * @throws AppError conflict PORT_IN_USE for the given port
 */
export async function freePorts(count: number, given?: number): Promise<number[]> {
  const size = range.end - range.first;
  const begin = (process.pid * block) % size;
  const held = given === undefined ? [] : [await hold(given)];
  const found: Server[] = [];
  try {
    for (let place = 0; found.length < count; place += 1) {
      if (place >= size) throw new Error(`no ${count} free ports on 127.0.0.1`);
      const server = await listen(range.first + ((begin + place) % size));
      if (server !== undefined) found.push(server);
    }
    return found.map(portOf);
  } finally {
    await Promise.all([...held, ...found].map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

async function hold(port: number): Promise<Server> {
  const server = await listen(port);
  if (server !== undefined) return server;
  throw localError(
    'PORT_IN_USE',
    `port ${port} of 127.0.0.1 cannot be used: another process listens there, or it is reserved; choose another port`,
  );
}

/** Undefined when the port is taken. */
function listen(port: number): Promise<Server | undefined> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
      else reject(error);
    });
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

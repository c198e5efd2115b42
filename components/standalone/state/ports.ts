import { createServer, type Server } from 'node:net';

/** Above the well-known ports and below the ephemeral ports of systems. */
const range = { first: 20_000, end: 32_000 } as const;
/**
 * Step between start positions: processes that start together search in different ranges, because a port is bound a
 * little after it was found.
 */
const block = 100;

/** Finds free ports on 127.0.0.1. All are held until all are found, so they are distinct. */
export async function freePorts(count: number): Promise<number[]> {
  const size = range.end - range.first;
  const begin = (process.pid * block) % size;
  const servers: Server[] = [];
  try {
    for (let place = 0; servers.length < count; place += 1) {
      if (place >= size) throw new Error(`no ${count} free ports on 127.0.0.1`);
      const server = await listen(range.first + ((begin + place) % size));
      if (server !== undefined) servers.push(server);
    }
    return servers.map(portOf);
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
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

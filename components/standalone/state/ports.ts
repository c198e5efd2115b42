import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';

/** Above the well-known ports and below those that systems hand to outgoing connections, which come and go all the time. */
const range = { first: 20_000, end: 32_000 } as const;
const mostTries = 500;

/** Free ports on 127.0.0.1, all held until all are found, so no two are the same. */
export async function freePorts(count: number): Promise<number[]> {
  const servers: Server[] = [];
  try {
    for (let tries = 0; servers.length < count; tries += 1) {
      if (tries > mostTries + count) throw new Error(`no ${count} free ports on 127.0.0.1`);
      const server = await listen(randomInt(range.first, range.end));
      if (server !== undefined) servers.push(server);
    }
    return servers.map(portOf);
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

/** Undefined when somebody else has the port. */
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

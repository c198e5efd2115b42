import { createServer, type Server } from 'node:net';

/** Above the well-known ports and below those that systems hand to outgoing connections, which come and go all the time. */
const range = { first: 20_000, end: 32_000 } as const;
/** Where a process begins to look: two that start together take different ports, although each takes them a little later. */
const block = 100;

/** Free ports on 127.0.0.1, all held until all are found, so no two are the same. */
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

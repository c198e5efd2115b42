import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';

/** A bare proxy: node:http in front of an undici pool over mutual TLS. Settings: {origin, key, cert, ca}. */

const { origin, key, cert, ca } = JSON.parse(process.argv[2] ?? '{}');
const pool = new Pool(origin, {
  connections: 64,
  connect: { key, cert, ca, checkServerIdentity: () => undefined },
});

const server = createServer((request, response) => {
  const body = request.method === 'GET' ? null : request;
  pool
    .stream(
      {
        path: request.url ?? '/',
        method: request.method as 'GET',
        headers: forwarded(request.headers),
        body,
      },
      ({ statusCode, headers }) => {
        response.writeHead(statusCode, headers as Record<string, string>);
        return response;
      },
    )
    .catch(() => response.destroy());
});

function forwarded(headers: NodeJS.Dict<string | string[]>): Record<string, string | string[] | undefined> {
  const { connection: _connection, 'keep-alive': _keepAlive, host: _host, ...rest } = headers;
  return rest;
}

server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

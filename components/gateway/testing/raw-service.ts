import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { Identity } from '../forwarding/connector.ts';
import { acceptOf } from '../forwarding/handshake.ts';

/** One connection to a raw service. */
export interface RawConnection {
  readonly socket: TLSSocket;
  /** Everything received, as latin1. */
  received: string;
}

/** A service that writes raw bytes: it answers the first head of a connection by a script, and may violate any rule. */
export interface RawService {
  readonly address: string;
  readonly connections: RawConnection[];
  stop(): Promise<void>;
}

/** Writes the answer to the received head. */
export type Script = (connection: RawConnection) => void;

/** The answer of the service to a request that bypassed the gateway. */
export const secret = 'REACHED-PAST-THE-GATEWAY';

/**
 * Starts a service that follows `script` for the first head of a connection and answers every later request, like a
 * service that keeps a connection alive after a refused upgrade.
 */
export async function startRawService(identity: Identity, script: Script): Promise<RawService> {
  const connections: RawConnection[] = [];
  const server = createServer(
    { ...identity, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' },
    (socket) => {
      const connection: RawConnection = { socket, received: '' };
      connections.push(connection);
      let heads = 0;
      socket.on('error', () => socket.destroy());
      socket.on('data', (chunk: Buffer) => {
        connection.received += chunk.toString('latin1');
        const seen = connection.received.split('\r\n\r\n').length - 1;
        for (; heads < seen; heads += 1) {
          if (heads === 0) script(connection);
          else socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${secret.length}\r\n\r\n${secret}`);
        }
      });
    },
  );
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections,
    stop: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      for (const { socket } of connections) socket.destroy();
      await closed.promise;
    },
  };
}

/** The answer that accepts the handshake of a connection; `changes` replaces or removes headers. */
export function agreement(
  { received }: RawConnection,
  changes: Readonly<Record<string, string | undefined>> = {},
): string {
  const key = /sec-websocket-key: (\S+)/i.exec(received)?.[1] ?? '';
  const headers: Record<string, string | undefined> = {
    upgrade: 'websocket',
    connection: 'Upgrade',
    'sec-websocket-accept': acceptOf(key),
    ...changes,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}`],
  );
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`;
}

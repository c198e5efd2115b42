import { randomBytes } from 'node:crypto';
import { type AddressInfo, createServer, type Server } from 'node:net';
import type { Logger } from '#kit/log/log.ts';
import { localError } from '../errors.ts';
import { Connection, type Hub } from './connection.ts';
import { Router } from './router.ts';

const MEBIBYTE = 1024 * 1024;
const connectionsLimit = 1_024;
const pingEveryMs = 30_000;

interface BrokerOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly log: Logger;
  /** Maximum size of a message, headers included, bytes. Default 1 MiB, like nats-server. */
  readonly payloadLimitBytes?: number;
  /** Bytes that may wait for a client that reads slowly before it is disconnected. Default 8 MiB. */
  readonly pendingLimitBytes?: number;
}

export interface Broker {
  /** `nats://host:port`. */
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * Core NATS for local mode: what the official clients need to publish, subscribe (wildcards, queue groups, limits) and
 * request. No accounts, clusters, persistence or TLS. It listens on loopback and carries wake signals without content.
 *
 * Errors: unavailable/BROKER_LISTEN_FAILED.
 */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const hub: Hub = {
    router: new Router<Connection>(),
    log: options.log,
    limits: {
      payloadBytes: options.payloadLimitBytes ?? MEBIBYTE,
      pendingBytes: options.pendingLimitBytes ?? 8 * MEBIBYTE,
      pingIntervalMs: pingEveryMs,
    },
  };
  const serverId = randomBytes(16).toString('hex').toUpperCase();
  const connections = new Set<Connection>();
  let nextClient = 1;
  const server = createServer((socket) => {
    if (connections.size >= connectionsLimit) {
      socket.on('error', () => socket.destroy());
      socket.end("-ERR 'maximum connections exceeded'\r\n");
      return;
    }
    const greeting = info({ serverId, clientId: nextClient, hub, server });
    nextClient += 1;
    const connection = new Connection(socket, hub, greeting);
    connections.add(connection);
    socket.once('close', () => connections.delete(connection));
  });
  const port = await listen(server, options);
  options.log.debug({ port }, 'bus listens');
  return {
    url: `nats://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`,
    port,
    stop: () => stop(server, connections),
  };
}

interface Greeting {
  readonly serverId: string;
  readonly clientId: number;
  readonly hub: Hub;
  readonly server: Server;
}

function info({ serverId, clientId, hub, server }: Greeting): string {
  const { address, port } = server.address() as AddressInfo;
  const facts = {
    server_id: serverId,
    server_name: 'chancery-local',
    version: '2.12.0',
    proto: 1,
    host: address,
    port,
    headers: true,
    max_payload: hub.limits.payloadBytes,
    client_id: clientId,
  };
  return `INFO ${JSON.stringify(facts)}\r\n`;
}

function listen(server: Server, { host, port }: BrokerOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const text = `the bus cannot listen on ${host}:${port}: ${cause.message}`;
      reject(localError('BROKER_LISTEN_FAILED', text, { cause }));
    });
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port));
  });
}

function stop(server: Server, connections: ReadonlySet<Connection>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const connection of connections) connection.end();
  });
}

import type { IncomingMessage, RequestListener } from 'node:http';
import { request as httpRequest } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { addressSettingOf, listServices } from '#core/identity/services.ts';
import { loadConfig } from '#kit/config/config.ts';
import { Cleanup, type Component } from '#kit/lifecycle/lifecycle.ts';
import { type TestRuntime, testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { createGatewayOf } from '../compose.ts';
import { gatewaySettings } from '../config.ts';
import type { Identity } from '../forwarding/connector.ts';
import { routingTableOf } from '../routing/table.ts';
import { createTestAuthority, type TestAuthority } from './certificates.ts';

/** The routing table of an installation. */
export const routingTable = routingTableOf(listServices());

export const clientIds = {
  tenant: 'service-tenant',
  wallet: 'service-wallet',
  register: 'service-register',
  validator: 'validator-0',
  peer: 'service-peer',
  blueprint: 'service-blueprint',
  credential: 'service-credential',
  'tool-server': 'service-tool-server',
} as const;

type ServiceName = keyof typeof clientIds;

/** A service with a real certificate that records its requests. */
export interface TestService {
  readonly server: Server;
  readonly address: string;
  readonly seen: IncomingMessage[];
  stop(): Promise<void>;
}

export interface ServiceOptions {
  readonly identity?: Identity;
  readonly port?: number;
}

/** A gateway with test services behind it; everything listens on loopback and port 0. */
export interface TestWorld {
  readonly authority: TestAuthority;
  readonly runtime: TestRuntime;
  startService(
    service: ServiceName,
    handler: RequestListener,
    options?: ServiceOptions,
  ): Promise<TestService>;
  startGateway(
    services: Partial<Record<ServiceName, string>>,
    env?: Record<string, string>,
    stalledMs?: number,
  ): Promise<TestGateway>;
  stop(): Promise<void>;
}

export interface TestGateway {
  readonly port: number;
  readonly component: Component;
  rotate(): Promise<void>;
}

export function spiffeId(clientId: string): string {
  return `spiffe://${testInstallation}/service/${clientId}`;
}

export async function createTestWorld(): Promise<TestWorld> {
  const authority = await createTestAuthority();
  const runtime = testRuntime('gateway');
  const cleanup = new Cleanup();
  return {
    authority,
    runtime,
    startService: async (service, handler, options = {}) => {
      const identity = options.identity ?? (await authority.issue(spiffeId(clientIds[service])));
      const started = await startService(identity, handler, options.port ?? 0);
      cleanup.add(service, () => started.stop());
      return started;
    },
    startGateway: async (services, env = {}, stalledMs = 30_000) => {
      const config = loadConfig(gatewaySettings, {
        CHANCERY_INSTALLATION: testInstallation,
        CHANCERY_LISTEN_HOST: '127.0.0.1',
        CHANCERY_GATEWAY_PORT: '0',
        CHANCERY_OPS_PORT: '0',
        SPIFFE_ENDPOINT_SOCKET: 'unix:/nowhere',
        ...Object.fromEntries(
          Object.entries(services).map(([service, address]) => [addressSettingOf(service, 'https'), address]),
        ),
        ...env,
      });
      const listeners = new Set<() => void>();
      let identity = await authority.issue(spiffeId('service-gateway'));
      const source = {
        current: () => identity,
        onRotate: (listener: () => void) => {
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
      };
      const create = createGatewayOf({ identify: async () => source, stalledMs });
      const component = await create(config, testRuntimeOf(runtime));
      cleanup.add('gateway', () => component.stop());
      return {
        component,
        port: Number(component.addresses['http']?.split(':').at(-1)),
        rotate: async () => {
          identity = await authority.issue(spiffeId('service-gateway'));
          for (const listener of listeners) listener();
        },
      };
    },
    stop: () => cleanup.run(runtime.log),
  };
}

/** Several gateways share one log; each has its own metrics. */
function testRuntimeOf(runtime: TestRuntime): TestRuntime {
  return { ...testRuntime('gateway'), log: runtime.log, lines: runtime.lines };
}

async function startService(
  identity: Identity,
  handler: RequestListener,
  port: number,
): Promise<TestService> {
  const seen: IncomingMessage[] = [];
  const server = createServer(
    { ...identity, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' },
    (request, response) => {
      seen.push(request);
      handler(request, response);
    },
  );
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(port, '127.0.0.1', resolve);
  await promise;
  return {
    server,
    seen,
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  json(): Record<string, unknown>;
}

export interface CallOptions {
  readonly method?: string;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string | Uint8Array;
}

/** One request over a dedicated connection, with the path exactly as given. */
export function call(port: number, path: string, options: CallOptions = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { method = 'GET', headers = {}, body } = options;
  const outgoing = httpRequest(
    { host: '127.0.0.1', port, path, method, headers, agent: false },
    (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.once('error', reject);
      incoming.once('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          text,
          json: () => JSON.parse(text),
        });
      });
    },
  );
  outgoing.once('error', reject);
  outgoing.end(body);
  return promise;
}

/** Sends raw bytes and returns everything received until the connection ends. */
export function sendRaw(port: number, bytes: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.once('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  socket.once('error', (error: NodeJS.ErrnoException) => {
    if (chunks.length === 0) reject(error);
  });
  socket.write(bytes, 'latin1');
  return promise;
}

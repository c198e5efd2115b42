import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type TestAuthority, testAuthority } from '#kit/testing/certificates.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import { connectService, type Service, type ServiceOptions } from '../transport.ts';

export interface ReceivedCall {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly authorization: string | undefined;
  /** Client port, so that a test can count connections. */
  readonly port: number | undefined;
}

/** Status and body of a response. */
export type Reply = {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
};

export interface HttpsService {
  readonly received: ReceivedCall[];
  readonly authority: TestAuthority;
  reply: (received: ReceivedCall) => Reply | 'reset' | 'hang' | Promise<Reply>;
  /** Creates a client with the operator's identity. */
  connect(options?: Partial<ServiceOptions>): Promise<Service>;
  close(): Promise<void>;
}

/** A fake service behind mutual TLS whose responses a test defines. */
export async function startHttpsService(clientId = 'service-tenant'): Promise<HttpsService> {
  const authority = await testAuthority();
  const { key, cert, ca } = await authority.issue(clientId);
  const server = createServer({
    key,
    cert,
    ca,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
  });
  server.on('request', (request, response) => void answer(service, request, response));
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const open: Service[] = [];
  const service: HttpsService = {
    received: [],
    authority,
    reply: () => ({ status: 200, body: {} }),
    connect: async (options = {}) => {
      const made = connectService({
        name: 'the tenant service',
        host: '127.0.0.1',
        port,
        expect: `spiffe://${testInstallation}/service/service-tenant`,
        identity: await authority.identity('service-operator'),
        token: async () => 'token',
        guard: () => 10_000,
        ...options,
      });
      open.push(made);
      return made;
    },
    close: async () => {
      for (const each of open) each.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return service;
}

async function answer(
  service: HttpsService,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const text = Buffer.concat(chunks).toString();
  const received: ReceivedCall = {
    method: request.method ?? '',
    path: request.url ?? '',
    body: text === '' ? undefined : JSON.parse(text),
    authorization: request.headers.authorization,
    port: request.socket.remotePort,
  };
  service.received.push(received);
  const reply = await service.reply(received);
  if (reply === 'reset') return void request.socket.destroy();
  if (reply === 'hang') return;
  response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers });
  response.end(reply.body === undefined ? undefined : JSON.stringify(reply.body));
}

import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type TestAuthority, testAuthority } from '#kit/testing/certificates.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { createServiceClient } from './client.ts';

let authority: TestAuthority;
let server: Server;
let connections = 0;

beforeAll(async () => {
  authority = await testAuthority();
  const { key, cert, ca } = (await authority.identity('service-register')).current();
  const options = { key, cert, ca, requestCert: true, minVersion: 'TLSv1.3' } as const;
  server = createServer(options, (request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end('{"is":"answered"}');
  });
  server.on('secureConnection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
beforeEach(() => {
  connections = 0;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

async function open(expected: string) {
  const { port } = server.address() as AddressInfo;
  const svid = await authority.identity('service-test');
  const workload = {
    current: () => ({ id: '', expiresAtMs: 0, ...svid.current() }),
  };
  const expectedId = serviceSpiffeId(testInstallation, expected);
  const client = createServiceClient({ workload, address: { host: '127.0.0.1', port }, expect: expectedId });
  const call = () => client.call({ method: 'POST', path: '/', bearer: 'token', body: {} });
  return { client, call, svid };
}

it('calls share a connection, until the SVID is another one', async () => {
  const { client, call, svid } = await open('service-register');
  for (let n = 0; n < 3; n++) expect((await call()).body).toEqual({ is: 'answered' });
  expect(connections).toBe(1);
  svid.rotate(await authority.issue('service-test'));
  await call();
  expect(connections).toBe(2);
  client.close();
});

it('a connection that the server has closed is replaced, and its identity is judged again', async () => {
  const { client, call } = await open('service-register');
  await call();
  server.closeAllConnections();
  await expect.poll(async () => (await call()).status).toBe(200);
  client.close();
});

it('another server is refused at each connection', async () => {
  const { client, call } = await open('service-wallet');
  for (let n = 0; n < 2; n++) await expect(call()).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  client.close();
});

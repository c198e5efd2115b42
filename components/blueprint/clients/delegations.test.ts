import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#kit/clock/clock.ts';
import { testAuthority } from '#kit/testing/certificates.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import { connectDelegations } from './delegations.ts';

let server: Server;
let delegations: ReturnType<typeof connectDelegations>;
let connections = 0;
let status = 200;

beforeAll(async () => {
  const authority = await testAuthority();
  const tenant = await authority.identity('service-tenant');
  const { key, cert, ca } = tenant.current();
  const options = { key, cert, ca, requestCert: true, minVersion: 'TLSv1.3' } as const;
  server = createServer(options, (request, response) => {
    request.resume();
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ access_token: 'delegated', expires_in: 300 }));
  });
  server.on('secureConnection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const svid = await authority.identity('service-blueprint');
  const id = `spiffe://${testInstallation}/service/service-blueprint`;
  const material = { id, expiresAtMs: Date.now() + 3_600_000, ...svid.current() };
  const workload = {
    id,
    trustDomain: testInstallation,
    current: () => material,
    onRotate: () => () => undefined,
    stop: () => undefined,
  };
  const identity = { workload, clientId: 'service-blueprint', clock: systemClock() };
  delegations = connectDelegations({ host: '127.0.0.1', port }, identity);
});
afterAll(async () => {
  delegations.close();
  await new Promise((resolve) => server.close(resolve));
});

it('tokens are exchanged over one connection, also behind a refusal', async () => {
  expect((await delegations.exchange('bearer')).token).toBe('delegated');
  status = 403;
  await expect(delegations.exchange('bearer')).rejects.toThrow('no authority');
  status = 200;
  await delegations.exchange('bearer');
  expect(connections).toBe(1);
});

it('requests at the same time do not wait for each other, and a connection that ended is replaced', async () => {
  await Promise.all(Array.from({ length: 4 }, () => delegations.exchange('bearer')));
  server.closeAllConnections();
  await expect.poll(() => delegations.exchange('bearer')).toMatchObject({ token: 'delegated' });
});

import dns from 'node:dns';
import { afterEach, expect, it } from 'vitest';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { createRpcClient, createRpcServer, type RpcServer } from './rpc.ts';
import { fixedWorkload, memoryAuthority } from './workload.fixture.ts';

const { lookup } = dns.promises;

afterEach(() => void Reflect.set(dns.promises, 'lookup', lookup));

it('a server that comes back under its name at another address is found soon', async () => {
  const runtime = testRuntime('test', { level: 'silent' });
  const authority = await memoryAuthority(testInstallation);
  const workload = await fixedWorkload(authority, 'service-tenant');
  const serve = async (host: string, port: number): Promise<RpcServer & { readonly port: number }> => {
    const server = createRpcServer({
      runtime,
      workload,
      host,
      port,
      authenticate: () => Promise.reject(new Error('nobody')),
    });
    const listRevocations = async () => ({ complete: true, revocations: [{ key: host }] });
    server.add(RevocationService, { listRevocations }, { allow: () => true });
    return Object.assign(server, { port: await server.listen() });
  };
  let address = '127.0.0.1';
  Reflect.set(dns.promises, 'lookup', async () => [{ address, family: 4 }]);
  const former = await serve(address, 0);
  const client = createRpcClient(RevocationService, {
    address: `moving.test:${former.port}`,
    workload: await fixedWorkload(authority, 'service-wallet'),
    expect: `spiffe://${testInstallation}/service/service-tenant`,
    runtime,
  });
  const whoAnswers = async () => (await client.listRevocations({ limit: 1 })).revocations[0]?.key;
  expect(await whoAnswers()).toBe('127.0.0.1');
  await former.stop();
  address = '127.0.0.2';
  const later = await serve(address, former.port);
  try {
    const isFound = async () => (await whoAnswers().catch(() => undefined)) === '127.0.0.2';
    await waitFor(isFound, { what: 'the server at its new address', deadlineMs: 10_000, everyMs: 100 });
  } finally {
    client.close();
    await later.stop();
  }
}, 20_000);

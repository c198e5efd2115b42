import dns from 'node:dns';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { type BlackHole, deafAddress, muteServer, stuckOnce } from './black-hole.fixture.ts';
import { transports } from './rpc.fixture.ts';
import { createRpcClient, createRpcServer, type RpcServer } from './rpc.ts';
import { fixedWorkload, memoryAuthority } from './workload.fixture.ts';

const { lookup } = dns.promises;
const runtime = testRuntime('test', { level: 'silent' });
const authority = await memoryAuthority(testInstallation);
const former = '127.0.0.1';
const later = '127.0.0.2';

let address: string;

beforeEach(() => {
  address = former;
  Reflect.set(dns.promises, 'lookup', async () => [{ address, family: 4 }]);
});
afterEach(() => void Reflect.set(dns.promises, 'lookup', lookup));

/** Answers with the address that it listens at, and counts its calls. */
async function serve(host: string, port: number) {
  const calls: string[] = [];
  const server: RpcServer = createRpcServer({
    runtime,
    workload: await fixedWorkload(authority, 'service-tenant'),
    host,
    port,
    authenticate: () => Promise.reject(new Error('nobody')),
  });
  const listRevocations = async () => {
    calls.push(host);
    return { complete: true, revocations: [{ key: host }] };
  };
  server.add(RevocationService, { listRevocations }, { allow: () => true });
  const listening = await server.listen();
  onTestFinished(() => server.stop());
  return { port: listening, calls, stop: () => server.stop() };
}

async function connect(port: number, multiplexed: boolean) {
  const client = createRpcClient(RevocationService, {
    address: `moving.test:${port}`,
    workload: await fixedWorkload(authority, 'service-wallet'),
    expect: `spiffe://${testInstallation}/service/service-tenant`,
    multiplexed,
    runtime,
  });
  onTestFinished(() => client.close());
  return {
    ask: async (options: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {}) =>
      (await client.listRevocations({ limit: 1 }, options)).revocations[0]?.key,
    close: () => client.close(),
  };
}

describe.each(transports)('unary calls %s', (_form, multiplexed) => {
  it('a server that returns under its name at another address is found soon', async () => {
    const first = await serve(former, 0);
    const { ask } = await connect(first.port, multiplexed);
    expect(await ask()).toBe(former);
    await first.stop();
    address = later;
    await serve(later, first.port);
    const isFound = async () => (await ask().catch(() => undefined)) === later;
    await waitFor(isFound, { what: 'the server at its new address', deadlineMs: 10_000, everyMs: 100 });
  }, 20_000);

  it('an attempt to connect that hangs after a refused one is abandoned', async () => {
    const { port } = await serve(later, 0);
    const { ask } = await connect(port, multiplexed);
    await expect(ask()).rejects.toMatchObject({ kind: 'unavailable' });
    const door = await stuckOnce({ host: former, port }, later);
    onTestFinished(() => door.close());
    const isFound = async () => (await ask().catch(() => undefined)) === later;
    await waitFor(isFound, { what: 'another attempt', deadlineMs: 10_000, everyMs: 100 });
  }, 20_000);

  describe.each<readonly [string, () => Promise<BlackHole>]>([
    ['answers no SYN', deafAddress],
    ['takes connections and says nothing', muteServer],
  ])('at an address that %s', (_what, open) => {
    async function blackHole(): Promise<number> {
      const hole = await open();
      onTestFinished(() => hole.close());
      return hole.port;
    }

    it('calls wait, and reach the next address of the name, once', async () => {
      const port = await blackHole();
      const { calls } = await serve(later, port);
      const { ask } = await connect(port, multiplexed);
      const asked = [ask(), ask({ timeoutMs: 60_000 })];
      await expect(ask({ timeoutMs: 200 })).rejects.toMatchObject({ kind: 'timeout' });
      address = later;
      expect(await Promise.all(asked)).toEqual([later, later]);
      expect(calls).toHaveLength(2);
      expect(await ask()).toBe(later);
    }, 20_000);

    it('an attempt ends when no call waits for it, and when its client is closed', async () => {
      const { ask, close } = await connect(await blackHole(), multiplexed);
      const abort = new AbortController();
      const given = ask({ signal: abort.signal });
      const waiting = ask();
      abort.abort();
      await expect(given).rejects.toMatchObject({ kind: 'unavailable' });
      close();
      await expect(waiting).rejects.toMatchObject({ kind: 'unavailable', code: 'RPC_CLIENT_CLOSED' });
    });
  });
});

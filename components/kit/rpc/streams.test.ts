import 'reflect-metadata';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { SystemSignerService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { SpiffeWorkloadAPI } from '#protos/gen/workloadapi_pb.js';
import { type RpcWorld, startRpcWorld, transports } from './rpc.fixture.ts';
import { type CallOptions, createRpcClient, createRpcServer } from './rpc.ts';
import { type FixedWorkload, fixedWorkload } from './workload.fixture.ts';

const runtime = testRuntime('test');
const serverId = `spiffe://${testInstallation}/service/service-tenant`;

describe.each(transports)('streams and rotation, unary calls %s', (_form, multiplexed) => {
  let world: RpcWorld;
  beforeAll(async () => {
    world = await startRpcWorld();
  });
  afterAll(async () => {
    await world.server.stop();
  });

  const connectAs = (workload: FixedWorkload, expected: string | ((id: string) => boolean) = serverId) =>
    createRpcClient(RevocationService, {
      address: `127.0.0.1:${world.port}`,
      workload,
      expect: expected,
      multiplexed,
      runtime,
    });
  const listAs = async (workload: FixedWorkload, options: CallOptions = {}) => {
    const client = connectAs(workload);
    try {
      return await client.listRevocations({ limit: 1 }, options);
    } finally {
      client.close();
    }
  };
  const signerAs = (workload: FixedWorkload) =>
    createRpcClient(SystemSignerService, {
      address: { host: '127.0.0.1', port: world.port },
      workload,
      expect: serverId,
      multiplexed,
      runtime,
    });
  describe('streams', () => {
    it('go both ways and end by half-close', async () => {
      const client = signerAs(world.clientWorkload);
      world.endedStreams = [];
      const stream = await client.signConsensus.open();
      const seen: unknown[] = [];
      const reading = (async () => {
        for await (const response of stream.responses) seen.push(response);
      })();
      for (let at = 0; at < 300; at += 1) await stream.send({});
      stream.close();
      await reading;
      expect(seen.length).toBe(300);
      await waitFor(() => world.endedStreams.includes('half-closed'));
      await expect(stream.send({})).rejects.toMatchObject({ code: 'RPC_STREAM_ENDED' });
      client.close();
    });

    it('notify the server when the client cancels', async () => {
      const client = signerAs(world.clientWorkload);
      world.endedStreams = [];
      const stream = await client.signConsensus.open();
      const answers = stream.responses[Symbol.asyncIterator]();
      await stream.send({});
      await answers.next();
      stream.cancel();
      await expect(answers.next()).rejects.toMatchObject({ kind: 'unavailable' });
      await waitFor(() => world.endedStreams.length > 0);
      expect(world.endedStreams[0]).toMatchObject({ code: 'RPC_CANCELLED' });
      client.close();
    });

    it('deliver everything to a slow reader, and can be left early', async () => {
      const client = createRpcClient(SpiffeWorkloadAPI, {
        address: `127.0.0.1:${world.port}`,
        workload: world.clientWorkload,
        expect: serverId,
        runtime,
      });
      let count = 0;
      for await (const _message of client.fetchX509SVID({})) {
        count += 1;
        if (count % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      expect(count).toBe(500);
      for await (const _message of client.fetchX509SVID({})) break;
      client.close();
    });

    it('deliver messages before an error, then the error', async () => {
      const client = createRpcClient(SpiffeWorkloadAPI, {
        address: `127.0.0.1:${world.port}`,
        workload: world.clientWorkload,
        expect: serverId,
        runtime,
      });
      const seen: unknown[] = [];
      const reading = (async () => {
        for await (const message of client.fetchX509Bundles({})) seen.push(message);
      })();
      await expect(reading).rejects.toMatchObject({ kind: 'conflict', code: 'HALF_WAY' });
      expect(seen.length).toBe(1);
      client.close();
    });

    it('end when the certificate that opened them expires, and open again with the next one', async () => {
      const workload = await fixedWorkload(world.authority, 'service-wallet', {
        notAfterMs: Date.now() + 2_500,
      });
      const client = signerAs(workload);
      const stream = await client.signConsensus.open();
      const answers = stream.responses[Symbol.asyncIterator]();
      await stream.send({});
      await answers.next();
      await workload.rotate();
      await stream.send({});
      await answers.next();
      await expect(answers.next()).rejects.toMatchObject({
        kind: 'unavailable',
        code: 'RPC_CERTIFICATE_EXPIRED',
      });
      const again = await client.signConsensus.open();
      await again.send({});
      again.close();
      for await (const answer of again.responses) expect(answer).toBeDefined();
      client.close();
    });
  });

  describe('rotation', () => {
    it('of the client gives new calls a new connection, and calls in flight finish', async () => {
      const workload = await fixedWorkload(world.authority, 'service-wallet');
      const client = signerAs(workload);
      const stream = await client.signConsensus.open();
      const answers = stream.responses[Symbol.asyncIterator]();
      await stream.send({});
      await answers.next();
      await workload.rotate();
      await client.getSystemKey({});
      await stream.send({});
      expect((await answers.next()).done).toBe(false);
      stream.close();
      expect((await answers.next()).done).toBe(true);
      client.close();
    });

    it('of the server keeps the listener, the live streams and the new authority', async () => {
      const client = signerAs(world.clientWorkload);
      const stream = await client.signConsensus.open();
      const answers = stream.responses[Symbol.asyncIterator]();
      await stream.send({});
      await answers.next();
      const before = await peerSerial(world.port, world.clientWorkload);
      await world.serverWorkload.rotate();
      expect(await peerSerial(world.port, world.clientWorkload)).not.toBe(before);
      await stream.send({});
      expect((await answers.next()).done).toBe(false);
      stream.close();
      client.close();
      await listAs(world.clientWorkload);
    });

    it('an expired certificate is refused on a connection that was opened before', async () => {
      const workload = await fixedWorkload(world.authority, 'service-wallet', {
        notAfterMs: Date.now() + 1_500,
      });
      const client = connectAs(workload);
      await client.listRevocations({});
      const refusal = await waitFor(() =>
        client.listRevocations({}).then(
          () => undefined,
          (error: unknown) => error,
        ),
      );
      expect(refusal).toMatchObject({ kind: 'unauthenticated', code: 'SVID_REFUSED' });
      client.close();
    });
  });

  it('recovers after the server was away', async () => {
    const workload = await fixedWorkload(world.authority, 'service-tenant');
    const first = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0 });
    first.add(RevocationService, { listRevocations: async () => ({}) }, { allow: () => true });
    const at = await first.listen();
    const client = createRpcClient(RevocationService, {
      address: `127.0.0.1:${at}`,
      workload: world.clientWorkload,
      expect: serverId,
      multiplexed,
      runtime,
    });
    await client.listRevocations({});
    await first.stop();
    await expect(client.listRevocations({})).rejects.toMatchObject({ kind: 'unavailable' });
    const second = createRpcServer({ runtime, workload, host: '127.0.0.1', port: at });
    second.add(RevocationService, { listRevocations: async () => ({}) }, { allow: () => true });
    await second.listen();
    await waitFor(() => client.listRevocations({}).then(() => true));
    client.close();
    await second.stop();
  });

  it('refuses to listen on a port in use', async () => {
    const other = createRpcServer({
      runtime,
      workload: world.serverWorkload,
      host: '127.0.0.1',
      port: world.port,
    });
    await expect(other.listen()).rejects.toMatchObject({ kind: 'unavailable', code: 'RPC_LISTEN_FAILED' });
    await other.stop();
  });

  it('ends streams that are open when the server stops', async () => {
    const workload = await fixedWorkload(world.authority, 'service-tenant');
    const stopping = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0 });
    stopping.add(
      SpiffeWorkloadAPI,
      {
        fetchX509SVID: async function* (_request, { signal }) {
          yield {};
          await new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason));
          });
        },
        fetchX509Bundles: async function* () {},
      },
      { allow: () => true },
    );
    const at = await stopping.listen();
    const client = createRpcClient(SpiffeWorkloadAPI, {
      address: `127.0.0.1:${at}`,
      workload: world.clientWorkload,
      expect: serverId,
      multiplexed,
      runtime,
    });
    const answers = client.fetchX509SVID({})[Symbol.asyncIterator]();
    await answers.next();
    const next = answers.next();
    const ended = expect(next).rejects.toMatchObject({ kind: 'unavailable' });
    await stopping.stop();
    await ended;
    client.close();
  }, 10_000);
});

async function peerSerial(port: number, workload: FixedWorkload): Promise<string> {
  const { key, cert, ca } = workload.current();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(
    { host: '127.0.0.1', port, key, cert, ca, checkServerIdentity: () => undefined },
    () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    },
  );
  socket.on('error', reject);
  return await promise;
}

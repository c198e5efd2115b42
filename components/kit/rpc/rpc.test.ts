import 'reflect-metadata';
import { connect, type TLSSocket } from 'node:tls';
import { KeyUsageFlags } from '@peculiar/x509';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { PrincipalService, RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { type RpcWorld, startRpcWorld, transports } from './rpc.fixture.ts';
import { type CallOptions, createRpcClient, createRpcServer } from './rpc.ts';
import { type FixedWorkload, fixedWorkload, memoryAuthority } from './workload.fixture.ts';

const runtime = testRuntime('test');
const serverId = `spiffe://${testInstallation}/service/service-tenant`;

describe.each(transports)('unary calls %s', (_form, multiplexed) => {
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

  it('answers a unary call and identifies the peer', async () => {
    world.contexts = [];
    const answer = await listAs(world.clientWorkload);
    expect(answer.revocations[0]?.key).toBe('a');
    expect(world.contexts[0]?.peer).toEqual({
      clientId: 'service-wallet',
      spiffeId: `spiffe://${testInstallation}/service/service-wallet`,
    });
    expect(world.contexts[0]?.caller).toBeUndefined();
    expect(world.contexts[0]?.deadline).toBeGreaterThan(Date.now());
  });

  it('disposes a response once it is encoded', async () => {
    world.disposed = [];
    expect((await listAs(world.clientWorkload)).revocations[0]?.key).toBe('a');
    expect(world.disposed).toEqual(['a']);
  });

  it('carries messages of 10 MiB and refuses larger than 16 MiB', async () => {
    const client = connectAs(world.clientWorkload);
    const answer = await client.listRevocations({ limit: 10 * 1024 * 1024 });
    expect(answer.revocations[0]?.key.length).toBe(10 * 1024 * 1024);
    await expect(client.listRevocations({ limit: 17 * 1024 * 1024 })).rejects.toMatchObject({
      kind: 'too_large',
    });
    client.close();
  });

  it('carries an AppError completely, and an internal one without its text', async () => {
    const client = connectAs(world.clientWorkload);
    await expect(client.listRevocations({ limit: 404 })).rejects.toMatchObject({
      kind: 'not_found',
      code: 'THING_NOT_FOUND',
      message: 'no such thing',
      details: { thing: 7 },
      violations: [{ code: 'VAL_X', message: 'x', severity: 'Error' }],
      retryAfterSeconds: 3,
    });
    await expect(client.listRevocations({ limit: 500 })).rejects.toMatchObject({
      kind: 'internal',
      message: 'internal error',
    });
    client.close();
  });

  it('ends a call at its deadline and aborts the handler', async () => {
    const client = connectAs(world.clientWorkload);
    world.contexts = [];
    await expect(client.listRevocations({ limit: 999 }, { timeoutMs: 200 })).rejects.toMatchObject({
      kind: 'timeout',
    });
    await waitFor(() => world.contexts[0]?.signal.aborted === true);
    client.close();
  });

  it('ends a call when its signal is aborted', async () => {
    const client = connectAs(world.clientWorkload);
    world.contexts = [];
    const controller = new AbortController();
    const call = client.listRevocations({ limit: 999 }, { signal: controller.signal });
    await waitFor(() => world.contexts.length > 0);
    controller.abort();
    await expect(call).rejects.toMatchObject({ kind: 'unavailable' });
    client.close();
  });

  it('refuses a peer that the service does not allow', async () => {
    const stranger = await fixedWorkload(world.authority, 'service-stranger');
    await expect(listAs(stranger)).rejects.toMatchObject({ kind: 'forbidden', code: 'FORBIDDEN' });
  });

  describe('tokens', () => {
    const upsert = async (token: string | undefined, options: CallOptions = {}) => {
      const client = createRpcClient(PrincipalService, {
        address: `127.0.0.1:${world.port}`,
        workload: world.clientWorkload,
        expect: serverId,
        multiplexed,
        runtime,
        ...(token !== undefined && { token: async () => token }),
      });
      try {
        return await client.upsertPrincipal({ clientId: 'x' }, options);
      } finally {
        client.close();
      }
    };

    it('accepts the service token of the peer', async () => {
      expect((await upsert('service:service-wallet')).principalId).toBe('service-wallet/x');
    });
    it('refuses another service’s token, a user’s, a broken one and none', async () => {
      for (const token of ['service:service-register', 'user:service-wallet', 'nonsense', undefined]) {
        await expect(upsert(token)).rejects.toMatchObject({ kind: 'unauthenticated' });
      }
    });
    it('verifies the subject token and refuses the call when it is bad', async () => {
      world.contexts = [];
      await listAs(world.clientWorkload, { subjectToken: 'user:alice' });
      expect(world.contexts[0]?.subject?.subject).toBe('user:alice');
      expect(world.contexts[0]?.subjectToken).toBe('user:alice');
      await expect(listAs(world.clientWorkload, { subjectToken: 'broken' })).rejects.toMatchObject({
        kind: 'unauthenticated',
      });
    });
  });

  describe('client certificates', () => {
    const id = `spiffe://${testInstallation}/service/service-wallet`;
    const cases = {
      'two URI SANs': { uris: [id, `spiffe://${testInstallation}/service/service-tenant`] },
      'no URI SAN': { uris: [] },
      'another trust domain in the name': { uris: ['spiffe://elsewhere/service/service-wallet'] },
      'no service path': { uris: [`spiffe://${testInstallation}/operator`] },
      'a URI that is no SPIFFE id': { uris: ['https://example.org/'] },
      'a CA certificate': { certificateAuthority: true },
      'no digitalSignature': { usages: KeyUsageFlags.keyAgreement },
      'keyCertSign beside digitalSignature': {
        usages: KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign,
      },
    };
    for (const [name, leaf] of Object.entries(cases)) {
      it(`refuses ${name}`, async () => {
        const workload = await fixedWorkload(world.authority, 'service-wallet', leaf);
        await expect(listAs(workload)).rejects.toMatchObject({
          kind: /unauthenticated|unavailable/ as never,
        });
      });
    }
    it('names two URI SANs as the reason of its refusal', async () => {
      const workload = await fixedWorkload(world.authority, 'service-wallet', cases['two URI SANs']);
      await expect(listAs(workload)).rejects.toMatchObject({
        kind: 'unauthenticated',
        code: 'SVID_REFUSED',
        message: expect.stringContaining('more than one URI name') as never,
      });
    });
    it('refuses an expired, a future and a foreign one in the handshake', async () => {
      const day = 86_400_000;
      const foreign = await memoryAuthority(testInstallation);
      const bad = [
        await fixedWorkload(world.authority, 'service-wallet', {
          notBeforeMs: Date.now() - 2 * day,
          notAfterMs: Date.now() - day,
        }),
        await fixedWorkload(world.authority, 'service-wallet', {
          notBeforeMs: Date.now() + day,
          notAfterMs: Date.now() + 2 * day,
        }),
      ];
      for (const workload of bad) {
        await expect(listAs(workload)).rejects.toMatchObject({ kind: 'unavailable' });
      }
      const imposter = await fixedWorkload(foreign, 'service-wallet');
      const trusting = {
        ...imposter,
        current: () => ({ ...imposter.current(), ca: world.authority.certificatePem }),
      };
      await expect(listAs(trusting)).rejects.toMatchObject({ kind: 'unavailable' });
    });
    it('refuses connections without a certificate, and TLS 1.2', async () => {
      const problem = (options: object) =>
        new Promise<string>((resolve) => {
          const socket: TLSSocket = connect({
            host: '127.0.0.1',
            port: world.port,
            ca: world.authority.certificatePem,
            ALPNProtocols: ['h2'],
            checkServerIdentity: () => undefined,
            ...options,
          });
          socket.on('error', (error) => resolve(error.message));
          socket.on('close', () => resolve('closed'));
          socket.resume();
        });
      expect(await problem({})).toMatch(/certificate required|closed/);
      const { key, cert } = world.clientWorkload.current();
      expect(await problem({ key, cert, maxVersion: 'TLSv1.2' })).toMatch(/protocol version|closed/);
    });
  });

  describe('the server’s certificate', () => {
    it('must have the expected identity', async () => {
      const client = connectAs(world.clientWorkload, `spiffe://${testInstallation}/service/service-register`);
      await expect(client.listRevocations({})).rejects.toMatchObject({ kind: 'unavailable' });
      client.close();
      const lenient = connectAs(world.clientWorkload, (id) => id.endsWith('/service-tenant'));
      await lenient.listRevocations({});
      lenient.close();
    });
    it('must have exactly one URI SAN', async () => {
      const workload = await fixedWorkload(world.authority, 'service-tenant', {
        uris: [serverId, `spiffe://${testInstallation}/service/other`],
      });
      const double = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0 });
      const at = await double.listen();
      const client = createRpcClient(RevocationService, {
        address: `127.0.0.1:${at}`,
        workload: world.clientWorkload,
        expect: () => true,
        multiplexed,
        runtime,
      });
      await expect(client.listRevocations({})).rejects.toMatchObject({ kind: 'unavailable' });
      client.close();
      await double.stop();
    });
  });

  it('measures calls by method and outcome', async () => {
    const text =
      (await runtime.telemetry.registry.metrics()) + (await world.runtime.telemetry.registry.metrics());
    expect(text).toContain('chancery_test_rpc_server_duration_seconds_count');
    expect(text).toMatch(
      /rpc_client_duration_seconds_count\{method="[^"]*ListRevocations",outcome="not_found"\}/,
    );
  });
});

import 'reflect-metadata';
import { connect, type TLSSocket } from 'node:tls';
import { KeyUsageFlags } from '@peculiar/x509';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { PrincipalService, RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { SystemSignerService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { SpiffeWorkloadAPI } from '#protos/gen/workloadapi_pb.js';
import type { Authority } from '../../standalone/issuer/authority.ts';
import {
  type CallOptions,
  createRpcClient,
  createRpcServer,
  type RpcContext,
  type RpcServer,
} from './rpc.ts';
import { type FixedWorkload, fixedWorkload, memoryAuthority } from './workload.fixture.ts';

const runtime = testRuntime('test');
const serverId = `spiffe://${testInstallation}/service/service-tenant`;

function callerOf(token: string): Caller {
  const [kind, clientId] = token.split(':');
  if (kind !== 'service' && kind !== 'user')
    throw new AppError('unauthenticated', 'UNAUTHORIZED', 'bad token');
  return { kind, clientId, subject: token, roles: [], scopes: [] } as unknown as Caller;
}

describe('rpc', () => {
  let authority: Authority;
  let serverWorkload: FixedWorkload;
  let clientWorkload: FixedWorkload;
  let server: RpcServer;
  let port = 0;
  let contexts: RpcContext[] = [];
  let endedStreams: unknown[] = [];

  beforeAll(async () => {
    authority = await memoryAuthority(testInstallation);
    serverWorkload = await fixedWorkload(authority, 'service-tenant');
    clientWorkload = await fixedWorkload(authority, 'service-wallet');
    server = createRpcServer({
      runtime,
      workload: serverWorkload,
      host: '127.0.0.1',
      port: 0,
      authenticate: async (token) => callerOf(token),
    });
    server.add(
      RevocationService,
      {
        listRevocations: async (request, context) => {
          contexts.push(context);
          if (request.limit === 404) {
            throw new AppError('not_found', 'THING_NOT_FOUND', 'no such thing', {
              details: { thing: 7 },
              violations: [{ code: 'VAL_X', message: 'x', severity: 'Error' }],
              retryAfterSeconds: 3,
            });
          }
          if (request.limit === 500) throw new Error('the password is hunter2');
          if (request.limit === 999) {
            await new Promise((_resolve, reject) => {
              context.signal.addEventListener('abort', () => reject(context.signal.reason));
            });
          }
          return { complete: true, revocations: [{ key: 'a'.repeat(request.limit) }] };
        },
      },
      { allow: (peer) => peer.clientId !== 'service-stranger' },
    );
    server.add(
      PrincipalService,
      {
        upsertPrincipal: async (request, { caller }) => ({
          principalId: `${caller?.clientId}/${request.clientId}`,
        }),
      },
      { allow: () => true, requireToken: true },
    );
    server.add(
      SystemSignerService,
      {
        getSystemKey: async () => ({}),
        signControl: async () => ({}),
        signCheckpoint: async () => ({}),
        signConsensus: async function* (requests, context) {
          try {
            for await (const _request of requests) yield {};
            endedStreams.push('half-closed');
          } catch (error) {
            endedStreams.push(error);
            throw error;
          } finally {
            contexts.push(context);
          }
        },
      },
      { allow: () => true },
    );
    server.add(
      SpiffeWorkloadAPI,
      {
        fetchX509SVID: async function* () {
          for (let at = 0; at < 500; at += 1) yield { crl: [new Uint8Array(1000)] };
        },
        fetchX509Bundles: async function* () {
          yield {};
          throw new AppError('conflict', 'HALF_WAY', 'enough');
        },
      },
      { allow: () => true },
    );
    port = await server.listen();
  });

  afterAll(async () => {
    await server.stop();
  });

  const connectAs = (workload: FixedWorkload, expected: string | ((id: string) => boolean) = serverId) =>
    createRpcClient(RevocationService, { address: `127.0.0.1:${port}`, workload, expect: expected, runtime });
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
      address: { host: '127.0.0.1', port },
      workload,
      expect: serverId,
      runtime,
    });

  it('answers a unary call and knows the peer', async () => {
    contexts = [];
    const answer = await listAs(clientWorkload);
    expect(answer.revocations[0]?.key).toBe('a');
    expect(contexts[0]?.peer).toEqual({
      clientId: 'service-wallet',
      spiffeId: `spiffe://${testInstallation}/service/service-wallet`,
    });
    expect(contexts[0]?.caller).toBeUndefined();
    expect(contexts[0]?.deadline).toBeGreaterThan(Date.now());
  });

  it('carries messages of 10 MiB and refuses larger than 16 MiB', async () => {
    const client = connectAs(clientWorkload);
    const answer = await client.listRevocations({ limit: 10 * 1024 * 1024 });
    expect(answer.revocations[0]?.key.length).toBe(10 * 1024 * 1024);
    await expect(client.listRevocations({ limit: 17 * 1024 * 1024 })).rejects.toMatchObject({
      kind: 'too_large',
    });
    client.close();
  });

  it('carries an AppError whole, and an internal one without its text', async () => {
    const client = connectAs(clientWorkload);
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

  it('ends a call at its deadline and tells the handler', async () => {
    const client = connectAs(clientWorkload);
    contexts = [];
    await expect(client.listRevocations({ limit: 999 }, { timeoutMs: 200 })).rejects.toMatchObject({
      kind: 'timeout',
    });
    await waitFor(() => contexts[0]?.signal.aborted === true);
    client.close();
  });

  it('ends a call when its signal is aborted', async () => {
    const client = connectAs(clientWorkload);
    contexts = [];
    const controller = new AbortController();
    const call = client.listRevocations({ limit: 999 }, { signal: controller.signal });
    await waitFor(() => contexts.length > 0);
    controller.abort();
    await expect(call).rejects.toMatchObject({ kind: 'unavailable' });
    client.close();
  });

  it('refuses a peer that the service does not allow', async () => {
    const stranger = await fixedWorkload(authority, 'service-stranger');
    await expect(listAs(stranger)).rejects.toMatchObject({ kind: 'forbidden', code: 'FORBIDDEN' });
  });

  describe('tokens', () => {
    const upsert = async (token: string | undefined, options: CallOptions = {}) => {
      const client = createRpcClient(PrincipalService, {
        address: `127.0.0.1:${port}`,
        workload: clientWorkload,
        expect: serverId,
        runtime,
        ...(token !== undefined && { token: async () => token }),
      });
      try {
        return await client.upsertPrincipal({ clientId: 'x' }, options);
      } finally {
        client.close();
      }
    };

    it('takes the service token of the peer', async () => {
      expect((await upsert('service:service-wallet')).principalId).toBe('service-wallet/x');
    });
    it('refuses another service’s token, a user’s, a broken one and none', async () => {
      for (const token of ['service:service-register', 'user:service-wallet', 'nonsense', undefined]) {
        await expect(upsert(token)).rejects.toMatchObject({ kind: 'unauthenticated' });
      }
    });
    it('verifies the subject token and refuses the call when it is bad', async () => {
      contexts = [];
      await listAs(clientWorkload, { subjectToken: 'user:alice' });
      expect(contexts[0]?.subject?.subject).toBe('user:alice');
      expect(contexts[0]?.subjectToken).toBe('user:alice');
      await expect(listAs(clientWorkload, { subjectToken: 'broken' })).rejects.toMatchObject({
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
        const workload = await fixedWorkload(authority, 'service-wallet', leaf);
        await expect(listAs(workload)).rejects.toMatchObject({
          kind: /unauthenticated|unavailable/ as never,
        });
      });
    }
    it('says why it refuses two URI SANs', async () => {
      const workload = await fixedWorkload(authority, 'service-wallet', cases['two URI SANs']);
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
        await fixedWorkload(authority, 'service-wallet', {
          notBeforeMs: Date.now() - 2 * day,
          notAfterMs: Date.now() - day,
        }),
        await fixedWorkload(authority, 'service-wallet', {
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
        current: () => ({ ...imposter.current(), ca: authority.certificatePem }),
      };
      await expect(listAs(trusting)).rejects.toMatchObject({ kind: 'unavailable' });
    });
    it('refuses no certificate, and TLS 1.2', async () => {
      const problem = (options: object) =>
        new Promise<string>((resolve) => {
          const socket: TLSSocket = connect({
            host: '127.0.0.1',
            port,
            ca: authority.certificatePem,
            ALPNProtocols: ['h2'],
            checkServerIdentity: () => undefined,
            ...options,
          });
          socket.on('error', (error) => resolve(error.message));
          socket.on('close', () => resolve('closed'));
          socket.resume();
        });
      expect(await problem({})).toMatch(/certificate required|closed/);
      const { key, cert } = clientWorkload.current();
      expect(await problem({ key, cert, maxVersion: 'TLSv1.2' })).toMatch(/protocol version|closed/);
    });
  });

  describe('the server’s certificate', () => {
    it('must be of the expected identity', async () => {
      const client = connectAs(clientWorkload, `spiffe://${testInstallation}/service/service-register`);
      await expect(client.listRevocations({})).rejects.toMatchObject({ kind: 'unavailable' });
      client.close();
      const lenient = connectAs(clientWorkload, (id) => id.endsWith('/service-tenant'));
      await lenient.listRevocations({});
      lenient.close();
    });
    it('must have exactly one URI SAN', async () => {
      const workload = await fixedWorkload(authority, 'service-tenant', {
        uris: [serverId, `spiffe://${testInstallation}/service/other`],
      });
      const double = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0 });
      const at = await double.listen();
      const client = createRpcClient(RevocationService, {
        address: `127.0.0.1:${at}`,
        workload: clientWorkload,
        expect: () => true,
        runtime,
      });
      await expect(client.listRevocations({})).rejects.toMatchObject({ kind: 'unavailable' });
      client.close();
      await double.stop();
    });
  });

  describe('streams', () => {
    it('go both ways and end by half-close', async () => {
      const client = signerAs(clientWorkload);
      endedStreams = [];
      const stream = await client.signConsensus.open();
      const seen: unknown[] = [];
      const reading = (async () => {
        for await (const response of stream.responses) seen.push(response);
      })();
      for (let at = 0; at < 300; at += 1) await stream.send({});
      stream.close();
      await reading;
      expect(seen.length).toBe(300);
      await waitFor(() => endedStreams.includes('half-closed'));
      await expect(stream.send({})).rejects.toMatchObject({ code: 'RPC_STREAM_ENDED' });
      client.close();
    });

    it('tell the server when the client cancels', async () => {
      const client = signerAs(clientWorkload);
      endedStreams = [];
      const stream = await client.signConsensus.open();
      const answers = stream.responses[Symbol.asyncIterator]();
      await stream.send({});
      await answers.next();
      stream.cancel();
      await expect(answers.next()).rejects.toMatchObject({ kind: 'unavailable' });
      await waitFor(() => endedStreams.length > 0);
      expect(endedStreams[0]).toMatchObject({ code: 'RPC_CANCELLED' });
      client.close();
    });

    it('server streams deliver everything to a slow reader, and can be left early', async () => {
      const client = createRpcClient(SpiffeWorkloadAPI, {
        address: `127.0.0.1:${port}`,
        workload: clientWorkload,
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

    it('deliver what came before an error, then the error', async () => {
      const client = createRpcClient(SpiffeWorkloadAPI, {
        address: `127.0.0.1:${port}`,
        workload: clientWorkload,
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
      const workload = await fixedWorkload(authority, 'service-wallet', { notAfterMs: Date.now() + 2_500 });
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
      const workload = await fixedWorkload(authority, 'service-wallet');
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
      const client = signerAs(clientWorkload);
      const stream = await client.signConsensus.open();
      const answers = stream.responses[Symbol.asyncIterator]();
      await stream.send({});
      await answers.next();
      const before = await peerSerial(port, clientWorkload);
      await serverWorkload.rotate();
      expect(await peerSerial(port, clientWorkload)).not.toBe(before);
      await stream.send({});
      expect((await answers.next()).done).toBe(false);
      stream.close();
      client.close();
      await listAs(clientWorkload);
    });

    it('an expired certificate is refused on a connection that was opened before', async () => {
      const workload = await fixedWorkload(authority, 'service-wallet', { notAfterMs: Date.now() + 1_500 });
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
    const workload = await fixedWorkload(authority, 'service-tenant');
    const first = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0 });
    first.add(RevocationService, { listRevocations: async () => ({}) }, { allow: () => true });
    const at = await first.listen();
    const client = createRpcClient(RevocationService, {
      address: `127.0.0.1:${at}`,
      workload: clientWorkload,
      expect: serverId,
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
    const other = createRpcServer({ runtime, workload: serverWorkload, host: '127.0.0.1', port });
    await expect(other.listen()).rejects.toMatchObject({ kind: 'unavailable', code: 'RPC_LISTEN_FAILED' });
    await other.stop();
  });

  it('stop ends streams that would go on', async () => {
    const workload = await fixedWorkload(authority, 'service-tenant');
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
      workload: clientWorkload,
      expect: serverId,
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

  it('measures calls by method and outcome', async () => {
    const text = await runtime.telemetry.registry.metrics();
    expect(text).toContain('chancery_test_rpc_server_duration_seconds_count');
    expect(text).toMatch(
      /rpc_client_duration_seconds_count\{method="[^"]*ListRevocations",outcome="not_found"\}/,
    );
  });
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

import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigError } from '#kit/config/config.ts';
import { Cleanup, type Component, start } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient, type RpcClient } from '#kit/rpc/rpc.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import {
  EventService,
  SystemSignerService,
  WalletService,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { startBroker } from '../standalone/bus/broker.ts';
import { createWallet } from './compose.ts';
import { walletSettings } from './config.ts';
import { fileKek } from './custody/kek.ts';
import { startTenantDouble, type TenantDouble } from './testing/tenant-double.ts';

const CONTROL = 'platform:register-control';

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe('the wallet service, started', () => {
  const runtime = testRuntime('test');
  const cleanup = new Cleanup();
  let tenant: TenantDouble;
  let env: Record<string, string>;
  let wallet: Component;

  beforeAll(async () => {
    tenant = await startTenantDouble();
    cleanup.add('tenant', () => tenant.stop());
    const broker = await startBroker({ host: '127.0.0.1', port: 0, log: runtime.log });
    cleanup.add('broker', () => broker.stop());
    const dir = mkdtempSync(join(tmpdir(), 'chy-'));
    cleanup.add('directory', () => rmSync(dir, { recursive: true, force: true }));
    const kek = join(dir, 'kek');
    writeFileSync(kek, randomBytes(32), { mode: 0o600 });
    env = {
      ...(await tenant.env('service-wallet')),
      NATS_URL: broker.url,
      DATABASE_URL: await testDatabase('wallet_compose'),
      CHANCERY_KEK_FILE: kek,
      CHANCERY_REGISTER_GRPC: '127.0.0.1:9',
    };
    wallet = await startWallet(env);
    cleanup.add('wallet', () => wallet.stop());
  });

  afterAll(() => cleanup.run(runtime.log));

  function startWallet(settings: Record<string, string>): Promise<Component> {
    return start({ service: 'service-wallet', schema: walletSettings, create: createWallet, env: settings });
  }

  async function signerClient(clientId: string, claims: object = {}, component = wallet) {
    const workload = await tenant.workload(clientId);
    const token = await tenant.token('service', { client_id: clientId, can_sign_system: true, ...claims });
    return client(workload, token, component);
  }

  function client(
    workload: Workload,
    token: string,
    component: Component,
  ): RpcClient<typeof SystemSignerService.method> {
    const rpc = createRpcClient(SystemSignerService, {
      address: component.addresses.grpc ?? '',
      workload,
      expect: serviceSpiffeId(workload.trustDomain, 'service-wallet'),
      token: async () => token,
      runtime,
    });
    cleanup.add('client', () => rpc.close());
    return rpc;
  }

  function control() {
    return {
      registerId: randomBytes(16).toString('hex'),
      transactionId: randomBytes(32).toString('hex'),
      payloadHash: randomBytes(32).toString('hex'),
      derivationPath: CONTROL,
      transactionType: 'Genesis',
    };
  }

  function overHttps(
    workload: Workload,
    path: string,
    token?: string,
    method = 'GET',
  ): Promise<{ status: number; body: string }> {
    const [host, port] = (wallet.addresses.https ?? '').split(':');
    const { key, cert, ca } = workload.current();
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
    const options = {
      host,
      port,
      method,
      path,
      key,
      cert,
      ca,
      agent: false,
      checkServerIdentity: () => undefined,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    };
    request(options, async (response) =>
      resolve({ status: response.statusCode ?? 0, body: await text(response) }),
    )
      .on('error', reject)
      .end();
    return promise;
  }

  test('becomes ready, and a second replica on the same database has the same control key', async () => {
    const ready = await fetch(`http://${wallet.addresses.ops}/ready`);
    expect(ready.status).toBe(200);
    const second = await startWallet(env);
    cleanup.add('second', () => second.stop());
    const here = await (await signerClient('service-register')).getSystemKey({ derivationPath: CONTROL });
    const there = await (await signerClient('service-register', {}, second)).getSystemKey({
      derivationPath: CONTROL,
    });
    expect(there.key).toEqual(here.key);
  });

  test('over real certificates: the claim is in the token, the identity in the SVID', async () => {
    const register = await signerClient('service-register');
    expect((await register.signControl(control())).signature).toHaveLength(64);
    const without = await signerClient('service-register', { can_sign_system: false });
    await expect(without.signControl(control())).rejects.toMatchObject({ code: 'SIGNING_CLAIM_MISSING' });
    const borrowed = client(
      await tenant.workload('service-peer'),
      await tenant.token('service', { client_id: 'service-register', can_sign_system: true }),
      wallet,
    );
    await expect(borrowed.signControl(control())).rejects.toMatchObject({ kind: 'unauthenticated' });
    const human = await tenant.token('platform', {
      client_id: 'service-register',
      can_sign_system: true,
      roles: ['User'],
    });
    const posing = client(await tenant.workload('service-register'), human, wallet);
    await expect(posing.signControl(control())).rejects.toMatchObject({ kind: 'unauthenticated' });
  });

  test('a validator stream over the wire: opened, signed, refused, fenced and ended', async () => {
    const first = await (await signerClient('validator-0')).signConsensus.open();
    await first.send({ requestId: 1n, message: { case: 'open', value: { validatorId: 'validator-0' } } });
    const answers = first.responses[Symbol.asyncIterator]();
    const opened = await answers.next();
    expect(opened.value?.result).toMatchObject({ case: 'opened', value: { epoch: 1n } });
    const value = {
      type: 3,
      networkId: 'acme',
      registerId: randomBytes(16).toString('hex'),
      height: 1n,
      round: 0,
      polRound: -1,
      docketHash: 'aa'.repeat(32),
      merkleRoot: 'bb'.repeat(32),
      logRoot: 'cc'.repeat(32),
      validatorSetHash: 'dd'.repeat(32),
      timestamp: '2026-11-21T12:00:00.0000000+00:00',
    };
    const vote = async (requestId: bigint, change: object) => {
      await first.send({ requestId, message: { case: 'consensus', value: { ...value, ...change } } });
      return (await answers.next()).value?.result;
    };
    expect(await vote(2n, {})).toMatchObject({ case: 'signed' });
    expect(await vote(3n, { docketHash: 'ee'.repeat(32) })).toMatchObject({
      case: 'refusal',
      value: { code: 'DOUBLE_SIGN_REFUSED', message: 'height 1, round 0, step 3 is already signed' },
    });
    const second = await (await signerClient('validator-0')).signConsensus.open();
    await second.send({ requestId: 1n, message: { case: 'open', value: { validatorId: 'validator-0' } } });
    for await (const { result } of second.responses) {
      expect(result).toMatchObject({ case: 'opened', value: { epoch: 2n } });
      break;
    }
    expect(await vote(4n, { height: 2n })).toMatchObject({
      case: 'refusal',
      value: { code: 'SIGNER_FENCED' },
    });
    expect((await answers.next()).done).toBe(true);
    const metrics = await (await fetch(`http://${wallet.addresses.ops}/metrics`)).text();
    expect(metrics).toMatch(/_system_refusals_total\{code="DOUBLE_SIGN_REFUSED"\} 1\n/);
    expect(metrics).toMatch(/_system_signatures_total\{kind="precommit"\} 1\n/);
    second.close();
  });

  test('a person calls it with a bearer token through a service of the installation; SignDigest takes that token', async () => {
    const gateway = await tenant.workload('service-gateway');
    expect((await overHttps(gateway, '/api/wallets')).status).toBe(401);
    const alice = await tenant.token('platform', { platform_user_id: crypto.randomUUID(), roles: ['User'] });
    const listed = await overHttps(gateway, '/api/v1/wallets', alice);
    expect(listed.status).toBe(200);
    expect(JSON.parse(listed.body)).toMatchObject({ items: [], totalCount: 0 });
    const document = JSON.parse((await overHttps(gateway, '/openapi.json')).body);
    expect(Object.keys(document.paths)).toContain('/api/v1/wallets/{id}/access/{subject}/check');
    const workload = await tenant.workload('service-register');
    const token = await tenant.token('service', { client_id: 'service-register' });
    const rpc = createRpcClient(WalletService, {
      address: wallet.addresses.grpc ?? '',
      workload,
      expect: serviceSpiffeId(workload.trustDomain, 'service-wallet'),
      token: async () => token,
      runtime,
    });
    cleanup.add('client', () => rpc.close());
    expect((await rpc.listSubjectWallets({}, { subjectToken: alice })).wallets).toEqual([]);
    await expect(rpc.listSubjectWallets({})).rejects.toMatchObject({ kind: 'unauthenticated' });
    const request = { walletAddress: 'w1nothing', digest: new Uint8Array(32) };
    await expect(rpc.signDigest(request, { subjectToken: alice })).rejects.toMatchObject({
      code: 'WALLET_NOT_FOUND',
    });
  });

  test('an issuer key is for the tenant and the credential service, over their own connections', async () => {
    const path = '/api/internal/wallets/w1nothing/issuer-cert-key';
    const ask = async (connection: string, owner: string, claims: object = {}) => {
      const token = await tenant.token('service', { client_id: owner, ...claims });
      const { status, body } = await overHttps(await tenant.workload(connection), path, token);
      return [status, JSON.parse(body).code];
    };
    expect(await ask('service-tenant', 'service-tenant')).toEqual([404, 'WALLET_NOT_FOUND']);
    expect(await ask('service-credential', 'service-credential')).toEqual([404, 'WALLET_NOT_FOUND']);
    for (const connection of ['service-credential', 'service-register', 'service-gateway']) {
      expect(await ask(connection, 'service-tenant'), connection).toEqual([403, 'FORBIDDEN']);
    }
    expect(await ask('service-register', 'service-register')).toEqual([403, 'FORBIDDEN']);
    const person = { platform_user_id: crypto.randomUUID(), roles: ['Administrator'] };
    const human = await tenant.token('platform', { client_id: 'service-tenant', ...person });
    expect((await overHttps(await tenant.workload('service-tenant'), path, human)).status).toBe(403);
  });

  test('a delegated token stands for its person, only over a connection of its service and not over HTTP', async () => {
    const delegated = await tenant.token('service', {
      client_id: 'service-blueprint',
      scope: 'wallets:sign wallets:decrypt',
      delegated_user_id: crypto.randomUUID(),
      delegated_platform_user_id: crypto.randomUUID(),
    });
    const clientOf = async (clientId: string) => {
      const workload = await tenant.workload(clientId);
      const token = await tenant.token('service', { client_id: clientId });
      const rpc = createRpcClient(WalletService, {
        address: wallet.addresses.grpc ?? '',
        workload,
        expect: serviceSpiffeId(workload.trustDomain, 'service-wallet'),
        token: async () => token,
        runtime,
      });
      cleanup.add('client', () => rpc.close());
      return { rpc, workload };
    };
    const own = await clientOf('service-blueprint');
    const other = await clientOf('service-register');
    const options = { subjectToken: delegated };
    const unwrapping = { wallet: 'w1nothing', keys: [{ kid: 'w1nothing', alg: 'ECDH-ES+A256KW' }] };
    expect((await own.rpc.listSubjectWallets({}, options)).wallets).toEqual([]);
    await expect(own.rpc.unwrapKeys(unwrapping, options)).rejects.toMatchObject({ code: 'WALLET_NOT_FOUND' });
    for (const call of [
      () => other.rpc.listSubjectWallets({}, options),
      () => other.rpc.signDigest({ walletAddress: 'w1nothing', digest: new Uint8Array(32) }, options),
      () => other.rpc.unwrapKeys(unwrapping, options),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'DELEGATION_INVALID' });
    }
    expect((await own.rpc.findEncryptionKeys({ addresses: ['w1nothing'] })).keys).toEqual([]);
    const overHttp = await overHttps(own.workload, '/api/v1/wallets', delegated);
    expect([overHttp.status, JSON.parse(overHttp.body).code]).toEqual([403, 'PERSON_REQUIRED']);
  });

  test('the hub is for people of both tiers and for no service', async () => {
    const gateway = await tenant.workload('service-gateway');
    const negotiate = (token: string) =>
      overHttps(gateway, '/hubs/wallet/negotiate?negotiateVersion=1', token, 'POST');
    const person = { platform_user_id: crypto.randomUUID() };
    const tokens = {
      citizen: await tenant.token('consumer', person),
      member: await tenant.token('platform', { ...person, roles: ['User'] }),
    };
    for (const [who, token] of Object.entries(tokens)) {
      const { status, body } = await negotiate(token);
      expect([who, status]).toEqual([who, 200]);
      expect(JSON.parse(body).availableTransports).toHaveLength(3);
    }
    for (const claims of [{ client_id: 'service-blueprint' }, { client_id: 'service-wallet' }]) {
      expect((await negotiate(await tenant.token('service', claims))).status).toBe(401);
    }
  });

  test('only the tenant and the register service with their own tokens may read the event log', async () => {
    const reader = async (clientId: string, token?: string) => {
      const workload = await tenant.workload(clientId);
      const rpc = createRpcClient(EventService, {
        address: wallet.addresses.grpc ?? '',
        workload,
        expect: serviceSpiffeId(workload.trustDomain, 'service-wallet'),
        ...(token !== undefined && { token: async () => token }),
        runtime,
      });
      cleanup.add('reader', () => rpc.close());
      return rpc;
    };
    const tokenOf = (clientId: string) => tenant.token('service', { client_id: clientId });
    const allowed = await reader('service-tenant', await tokenOf('service-tenant'));
    expect(await allowed.readEvents({})).toMatchObject({ events: [], complete: true });
    const register = await reader('service-register', await tokenOf('service-register'));
    expect(await register.readEvents({})).toMatchObject({ events: [], complete: true });
    const blueprint = await reader('service-blueprint', await tokenOf('service-blueprint'));
    await expect(blueprint.readEvents({})).rejects.toMatchObject({ kind: 'forbidden' });
    const bare = await reader('service-tenant');
    await expect(bare.readEvents({})).rejects.toMatchObject({ kind: 'unauthenticated' });
  });

  test('a start that fails closes what it has opened', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    cleanup.add('other server', () => void other.close());
    const portOf = (server: Server) => (server.address() as AddressInfo).port;
    const grpcPort = await freePort();
    const settings = { ...env, CHANCERY_GRPC_PORT: String(grpcPort) };
    const failing = startWallet({ ...settings, CHANCERY_HTTPS_PORT: String(portOf(other)) });
    await expect(failing).rejects.toMatchObject({ code: 'EADDRINUSE' });
    // its gRPC listener was open when HTTPS failed
    const second = await startWallet(settings);
    expect(second.addresses.grpc).toBe(`127.0.0.1:${grpcPort}`);
    await second.stop();
  });

  test('invalid settings are reported all at once; a KEK of a wrong size or one that did not wrap the rows is refused', async () => {
    const broken = {
      ...env,
      CHANCERY_KEK_FILE: '/nowhere',
      CHANCERY_CONTROL_SIGNATURES_PER_MINUTE: '0',
      CHANCERY_ODD: '1',
    };
    const failure: unknown = await startWallet(broken).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ConfigError);
    expect(String(failure)).toContain('CHANCERY_KEK_FILE');
    expect(String(failure)).toContain('CHANCERY_CONTROL_SIGNATURES_PER_MINUTE');
    expect(String(failure)).toContain('CHANCERY_ODD');
    const dir = mkdtempSync(join(tmpdir(), 'chy-'));
    cleanup.add('directory', () => rmSync(dir, { recursive: true, force: true }));
    for (const [sizeBytes, code] of [
      [31, 'KEK_INVALID'],
      [32, 'KEK_UNKNOWN'],
    ] as const) {
      const kek = join(dir, code);
      writeFileSync(kek, randomBytes(sizeBytes));
      await expect(startWallet({ ...env, CHANCERY_KEK_FILE: kek })).rejects.toMatchObject({ code });
    }
  });

  test('the data keys move to the first listed key; the former one is then not needed', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'chy-'));
    cleanup.add('directory', () => rmSync(dir, { recursive: true, force: true }));
    const next = join(dir, 'next');
    writeFileSync(next, randomBytes(32));
    const both = await startWallet({ ...env, CHANCERY_KEK_FILE: `${next},${env['CHANCERY_KEK_FILE']}` });
    const read = async (component: Component, path: string) =>
      (await fetch(`http://${component.addresses.ops}${path}`)).text();
    const { currentId } = fileKek(readFileSync(env['CHANCERY_KEK_FILE'] ?? ''));
    const emptied = `chancery_wallet_data_keys{kek_id="${currentId}"} 0`;
    await expect.poll(() => read(both, '/metrics'), { timeout: 10_000 }).toContain(emptied);
    await both.stop();
    const alone = await startWallet({ ...env, CHANCERY_KEK_FILE: next });
    expect(JSON.parse(await read(alone, '/health'))).toMatchObject({ status: 'Healthy' });
    await alone.stop();
  });
});

import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createServiceTokens } from '#kit/auth/auth.ts';
import { Cleanup, type Component, start } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { connectWorkload, serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import {
  PrincipalService,
  RevocationKind,
  RevocationService,
} from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { startBroker } from '../standalone/bus/broker.ts';
import { type Issuer, startIssuer } from '../standalone/issuer/issuer.ts';
import { createTenant } from './compose.ts';
import { tenantSettings } from './config.ts';
import { adminEmail, adminPassword, makeTenantFiles, type TenantFiles } from './tenant.fixture.ts';

describe('the running tenant', () => {
  const runtime = testRuntime('other');
  const cleanup = new Cleanup();
  let issuer: Issuer;
  let files: TenantFiles;
  let tenant: Component;

  const begin = () => {
    const { env } = files;
    return start({ service: 'tenant', schema: tenantSettings, create: createTenant, env, log: runtime.log });
  };
  const at = (listener: string) => {
    const [host = '', port = ''] = (tenant.addresses[listener] ?? '').split(':');
    return { host, port: Number(port) };
  };
  const workloadOf = async (clientId: string): Promise<Workload> => {
    const { log, clock } = runtime;
    const workload = await connectWorkload({ socket: issuer.sockets[clientId] ?? '', log, clock });
    cleanup.add('workload', () => workload.stop());
    return workload;
  };
  const tokensOf = (workload: Workload, clientId: string) =>
    createServiceTokens({ workload, endpoint: at('mtls'), clientId, clock: runtime.clock, log: runtime.log });
  const clientOf = (workload: Workload, clientId: string) => ({
    address: at('grpc'),
    workload,
    expect: serviceSpiffeId(testInstallation, 'service-tenant'),
    token: tokensOf(workload, clientId),
    runtime,
  });
  const ops = async (path: string) => {
    const { host, port } = at('ops');
    const answer = await fetch(`http://${host}:${port}${path}`);
    return { status: answer.status, text: await answer.text() };
  };

  beforeAll(async () => {
    const { log, clock } = runtime;
    const directory = await mkdtemp(join(tmpdir(), 'chy-t-'));
    cleanup.add('directory', () => rm(directory, { recursive: true, force: true }));
    issuer = await startIssuer({
      dir: join(directory, 'ca'),
      socketDir: join(directory, 's'),
      installation: testInstallation,
      services: ['service-tenant', 'service-operator', 'service-register', 'validator-7'],
      log,
      clock,
    });
    cleanup.add('issuer', () => issuer.stop());
    const broker = await startBroker({ host: '127.0.0.1', port: 0, log });
    cleanup.add('broker', () => broker.stop());
    files = await makeTenantFiles('tenant_whole', {
      SPIFFE_ENDPOINT_SOCKET: `unix:${issuer.sockets['service-tenant']}`,
      NATS_URL: broker.url,
    });
    cleanup.add('files', () => files.remove());
    tenant = await begin();
    cleanup.add('tenant', () => tenant.stop());
  });
  afterAll(() => cleanup.run(runtime.log));

  it('is alive, ready and measured', async () => {
    expect((await ops('/ready')).status).toBe(200);
    expect((await ops('/alive')).status).toBe(200);
    expect((await ops('/metrics')).text).toContain('chancery_tenant_');
  });

  it('lets the operator keep principals, which then mint with their certificate', async () => {
    const operator = await workloadOf('service-operator');
    const principals = createRpcClient(PrincipalService, clientOf(operator, 'service-operator'));
    const wish = {
      clientId: 'validator-7',
      serviceName: 'validator',
      scopes: ['dockets:write', 'registers:read'],
      canSignSystem: true,
    };
    const { principalId } = await principals.upsertPrincipal(wish);
    const token = await tokensOf(await workloadOf('validator-7'), 'validator-7')();
    expect(decodeJwt(token)).toMatchObject({
      sub: principalId,
      client_id: 'validator-7',
      scope: 'dockets:write registers:read',
      can_sign_system: true,
    });
    expect(await principals.upsertPrincipal({ ...wish, scopes: ['dockets:write'] })).toMatchObject({
      principalId,
    });
    await expect(principals.upsertPrincipal({ ...wish, scopes: ['root'] })).rejects.toMatchObject({
      code: 'UNKNOWN_SCOPE',
    });
    const gateway = { ...wish, clientId: 'service-gateway', serviceName: 'gateway', scopes: [] };
    await expect(principals.upsertPrincipal(gateway)).rejects.toMatchObject({ kind: 'invalid' });
    principals.close();
  });

  it('lets nobody else keep principals', async () => {
    const register = await workloadOf('service-register');
    const principals = createRpcClient(PrincipalService, clientOf(register, 'service-register'));
    const wish = { clientId: 'service-register', serviceName: 'register', scopes: ['dockets:write'] };
    await expect(principals.upsertPrincipal(wish)).rejects.toMatchObject({ kind: 'forbidden' });
    principals.close();
  });

  it('lists a revocation to every service within a second', async () => {
    const register = await workloadOf('service-register');
    const revocations = createRpcClient(RevocationService, clientOf(register, 'service-register'));
    const { host, port } = at('https');
    const login = await postOverMtls(
      register,
      { host, port, path: '/api/auth/login' },
      {
        email: adminEmail,
        password: adminPassword,
      },
    );
    const token = String(login['access_token']);
    await postOverMtls(register, { host, port, path: '/api/auth/logout', token }, {});
    const { jti = '', sid } = decodeJwt(token);
    const loggedOutAt = performance.now();
    await expect
      .poll(async () =>
        (await revocations.listRevocations({})).revocations.map(({ kind, key }) => [kind, key]),
      )
      .toEqual(
        expect.arrayContaining([
          [RevocationKind.TOKEN, jti],
          [RevocationKind.SESSION, sid],
        ]),
      );
    expect(performance.now() - loggedOutAt).toBeLessThan(1_000);
    const all = await revocations.listRevocations({});
    expect(all.complete).toBe(true);
    if (all.next === undefined) throw new Error('no cursor');
    const rest = await revocations.listRevocations({ after: all.next });
    expect(rest).toMatchObject({ revocations: [], next: all.next, complete: true });
    const first = await revocations.listRevocations({ limit: 1 });
    expect(first.revocations).toHaveLength(1);
    expect(first.complete).toBe(false);
    revocations.close();
  });

  it('stops, starts again on the same database and keeps keys and accounts', async () => {
    const register = await workloadOf('service-register');
    const before = await tokensOf(register, 'service-register')();
    await tenant.stop();
    tenant = await begin();
    cleanup.add('tenant again', () => tenant.stop());
    const after = await tokensOf(register, 'service-register')();
    const kidOf = (token: string) =>
      JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid;
    expect(kidOf(after)).toBe(kidOf(before));
  });
});

interface Target {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly token?: string;
}

function postOverMtls(workload: Workload, target: Target, body: unknown): Promise<Record<string, unknown>> {
  const { key, cert, ca } = workload.current();
  const payload = JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const { host, port, path, token } = target;
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(payload),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const tls = { key, cert, ca, checkServerIdentity: () => undefined };
    const sent = request({ host, port, path, method: 'POST', headers, agent: false, ...tls }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve(JSON.parse(text)));
    });
    sent.on('error', reject);
    sent.end(payload);
  });
}

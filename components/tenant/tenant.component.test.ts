import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serviceOf } from '#core/identity/services.ts';
import { createServiceTokens } from '#kit/auth/auth.ts';
import { Cleanup, type Component, start } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { connectWorkload, serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import {
  PrincipalService,
  PrincipalStatus,
  RevocationKind,
  RevocationService,
} from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { startBroker } from '../standalone/bus/broker.ts';
import { type Issuer, startIssuer } from '../svid-issuer/local/issuer.ts';
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
      services: ['service-tenant', 'service-operator', 'service-register', 'validator-7', 'validator-8'],
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

  it('answers liveness, readiness and metrics', async () => {
    expect((await ops('/ready')).status).toBe(200);
    expect((await ops('/alive')).status).toBe(200);
    expect((await ops('/metrics')).text).toContain('chancery_tenant_');
  });

  it('the operator creates principals, which then mint with their certificate', async () => {
    const operator = await workloadOf('service-operator');
    const principals = createRpcClient(PrincipalService, clientOf(operator, 'service-operator'));
    const spec = {
      clientId: 'validator-7',
      serviceName: 'validator',
      scopes: ['dockets:write', 'registers:read'],
      canSignSystem: true,
    };
    const { principalId } = await principals.upsertPrincipal(spec);
    const token = await tokensOf(await workloadOf('validator-7'), 'validator-7')();
    expect(decodeJwt(token)).toMatchObject({
      sub: principalId,
      client_id: 'validator-7',
      scope: 'dockets:write registers:read',
      can_sign_system: true,
    });
    expect(await principals.upsertPrincipal({ ...spec, scopes: ['dockets:write'] })).toMatchObject({
      principalId,
    });
    await expect(principals.upsertPrincipal({ ...spec, scopes: ['root'] })).rejects.toMatchObject({
      code: 'UNKNOWN_SCOPE',
    });
    const gateway = { ...spec, clientId: 'service-gateway', serviceName: 'gateway', scopes: [] };
    await expect(principals.upsertPrincipal(gateway)).rejects.toMatchObject({ kind: 'invalid' });
    principals.close();
  });

  it('lists principals and revokes that of a validator, which gets a new id when it is created again', async () => {
    const operator = await workloadOf('service-operator');
    const principals = createRpcClient(PrincipalService, clientOf(operator, 'service-operator'));
    const spec = {
      clientId: 'validator-8',
      serviceName: 'validator',
      scopes: [...serviceOf('validator').scopes],
      canSignSystem: true,
    };
    const { principalId } = await principals.upsertPrincipal(spec);
    const member = await workloadOf('validator-8');
    const token = await tokensOf(member, 'validator-8')();
    const statusOfCall = async () =>
      (await overMtls(member, { ...at('https'), path: '/api/auth/me', token })).status;
    expect(await statusOfCall()).toBe(200);
    const listed = async () => {
      const first = await principals.listPrincipals({ serviceName: 'validator', limit: 2 });
      expect([first.principals.length, first.complete]).toEqual([2, false]);
      const after = first.principals.at(-1)?.clientId ?? '';
      const rest = await principals.listPrincipals({ serviceName: 'validator', after });
      expect(rest.complete).toBe(true);
      return [...first.principals, ...rest.principals];
    };
    expect((await listed()).map((each) => each.clientId)).toEqual([
      'validator-0',
      'validator-7',
      'validator-8',
    ]);
    expect((await listed()).at(-1)).toMatchObject({ ...spec, principalId, status: PrincipalStatus.ACTIVE });
    expect(await principals.revokePrincipal({ clientId: 'validator-8' })).toMatchObject({ revoked: true });
    await expect.poll(statusOfCall, { interval: 20, timeout: 2_000 }).toBe(401);
    await expect(tokensOf(member, 'validator-8')()).rejects.toThrow();
    for (const clientId of ['validator-8', 'validator-unheard']) {
      expect(await principals.revokePrincipal({ clientId })).toMatchObject({ revoked: false });
    }
    expect((await listed()).at(-1)).toMatchObject({ status: PrincipalStatus.REVOKED });
    await expect(principals.revokePrincipal({ clientId: 'service-wallet' })).rejects.toMatchObject({
      code: 'PRINCIPAL_PROTECTED',
    });
    const renewed = await principals.upsertPrincipal(spec);
    expect(renewed.principalId).not.toBe(principalId);
    expect(await principals.upsertPrincipal(spec)).toMatchObject(renewed);
    const again = await tokensOf(member, 'validator-8')();
    const answer = await overMtls(member, { ...at('https'), path: '/api/auth/me', token: again });
    expect(answer.status).toBe(200);
    expect(await statusOfCall()).toBe(401);
    principals.close();
  });

  it('only the operator on its own connection may manage organisations of resources', async () => {
    const operator = await workloadOf('service-operator');
    const register = await workloadOf('service-register');
    const token = await tokensOf(operator, 'service-operator')();
    const target = { ...at('https'), path: '/api/internal/organizations', token };
    const spec = { resourceUid: randomUUID(), name: 'Acme Works', subdomain: 'acme' };
    expect(await overMtls(register, target, spec)).toMatchObject({ status: 403 });
    expect(await overMtls(operator, target, spec)).toMatchObject({ status: 201 });
    expect(await overMtls(operator, target, spec)).toMatchObject({ status: 200 });
  });

  it('other services may not manage principals', async () => {
    const register = await workloadOf('service-register');
    const principals = createRpcClient(PrincipalService, clientOf(register, 'service-register'));
    const spec = { clientId: 'service-register', serviceName: 'register', scopes: ['dockets:write'] };
    await expect(principals.upsertPrincipal(spec)).rejects.toMatchObject({ kind: 'forbidden' });
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
    // A page ends before rows that are newer than a running transaction, such as one of a job.
    await expect
      .poll(async () => {
        const all = await revocations.listRevocations({});
        if (!all.complete || all.next === undefined) return undefined;
        const rest = await revocations.listRevocations({ after: all.next });
        return [rest.revocations.length, rest.next?.toString() === all.next.toString(), rest.complete];
      })
      .toEqual([0, true, true]);
    const first = await revocations.listRevocations({ limit: 1 });
    expect(first.revocations).toHaveLength(1);
    expect(first.complete).toBe(false);
    revocations.close();
  });

  it('runs with two replicas, and continues when one of them stops', async () => {
    const twin = await begin();
    const operator = await workloadOf('service-operator');
    const token = await tokensOf(operator, 'service-operator')();
    const [host = '', port = ''] = (twin.addresses['https'] ?? '').split(':');
    const targets = [at('https'), { host, port: Number(port) }];
    const upsert = (target: Endpoint, spec: object) =>
      overMtls(operator, { ...target, path: '/api/internal/organizations', token }, spec);
    const spec = { resourceUid: randomUUID(), name: 'Twins', subdomain: 'twins' };
    const answers = await Promise.all(targets.map((target) => upsert(target, spec)));
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 201]);
    expect(answers[0]?.body['organizationId']).toBe(answers[1]?.body['organizationId']);
    await twin.stop();
    expect(await upsert(at('https'), { ...spec, name: 'One of them' })).toMatchObject({
      status: 200,
      body: { name: 'One of them', version: 2 },
    });
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

interface Endpoint {
  readonly host: string;
  readonly port: number;
}

interface Target extends Endpoint {
  readonly path: string;
  readonly token?: string;
}

async function postOverMtls(
  workload: Workload,
  target: Target,
  body: unknown,
): Promise<Record<string, unknown>> {
  return (await overMtls(workload, target, body)).body;
}

interface Answer {
  readonly status: number | undefined;
  readonly body: Record<string, unknown>;
}

/** POST with a body, GET without one. */
function overMtls(workload: Workload, target: Target, body?: unknown): Promise<Answer> {
  const { key, cert, ca } = workload.current();
  const payload = body === undefined ? '' : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const { host, port, path, token } = target;
    const headers = {
      ...(payload === '' ? {} : { 'content-type': 'application/json' }),
      'content-length': Buffer.byteLength(payload),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const method = payload === '' ? 'GET' : 'POST';
    const tls = { key, cert, ca, checkServerIdentity: () => undefined };
    const sent = request({ host, port, path, method, headers, agent: false, ...tls }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode, body: JSON.parse(text) }));
    });
    sent.on('error', reject);
    sent.end(payload);
  });
}

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SUBJECTS } from '#core/events/subjects.ts';
import { type Bus, connectBus } from '#kit/bus/bus.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { type App, createHttpServer, listenHttp, peerSpiffeId } from '#kit/http/http.ts';
import { createRpcServer, type RpcServer } from '#kit/rpc/rpc.ts';
import { type FixedWorkload, fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { RevocationKind, RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { type Broker, startBroker } from '../../standalone/bus/broker.ts';
import { createServiceTokens, type ServiceTokensOptions, tenantSession } from './auth.ts';

const host = '127.0.0.1';
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'ES256', use: 'sig' }] };

function tokenOf(claims: Record<string, unknown>): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({
    iss: `urn:platform:${testInstallation}`,
    iat: now,
    exp: now + 600,
    jti: randomUUID(),
    token_use: 'access',
    ...claims,
  })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'k1' })
    .sign(privateKey);
}

describe('the session at the tenant service', () => {
  const runtime = testRuntime('tenant');
  const revoked: { kind: RevocationKind; key: string; notBeforeMs: bigint; expiresAtMs: bigint }[] = [];
  const answer = { status: 200, body: undefined as unknown, mints: 0, presented: '', form: '' };
  let tenantWorkload: FixedWorkload;
  let workload: FixedWorkload;
  let impostor: FixedWorkload;
  let app: App;
  let rpc: RpcServer;
  let broker: Broker;
  let bus: Bus;
  let https = 0;
  let grpc = 0;

  beforeAll(async () => {
    const authority = await memoryAuthority(testInstallation);
    tenantWorkload = await fixedWorkload(authority, 'service-tenant');
    workload = await fixedWorkload(authority, 'service-wallet');
    impostor = await fixedWorkload(authority, 'service-register');
    app = createHttpServer({ runtime, title: 'tenant', https: tenantWorkload });
    app.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string' },
      (_request, body, done) => done(null, body),
    );
    app.get(
      '/.well-known/jwks.json',
      { config: { policy: 'Anonymous' }, schema: { hide: true } },
      async () => jwks,
    );
    app.post(
      '/api/internal/service-auth/token',
      { config: { policy: 'Anonymous' }, schema: { hide: true } },
      async (request, reply) => {
        answer.mints += 1;
        answer.presented = peerSpiffeId(request);
        answer.form = String(request.body);
        const minted = {
          access_token: await tokenOf({
            aud: [`${testInstallation}:service`],
            sub: 'principal-1',
            token_type: 'service',
            tier: 'service',
            client_id: 'service-wallet',
            scope: 'wallets:sign',
          }),
          token_type: 'Bearer',
          expires_in: 1_000,
        };
        return reply.status(answer.status).send(answer.body ?? minted);
      },
    );
    https = await listenHttp(app, { host, port: 0 });
    rpc = createRpcServer({ runtime, workload: tenantWorkload, host, port: 0 });
    rpc.add(
      RevocationService,
      {
        listRevocations: async ({ after }) => {
          const from = Number(after?.sequence ?? 0n);
          const next = { transactionId: 1n, sequence: BigInt(revoked.length) };
          return { revocations: revoked.slice(from), next, complete: true };
        },
      },
      { allow: () => true },
    );
    grpc = await rpc.listen();
    broker = await startBroker({ host, port: 0, log: runtime.log });
    bus = await connectBus({ url: broker.url, name: 'wallet', log: runtime.log });
  });
  afterAll(async () => {
    await bus.close();
    await broker.stop();
    await rpc.stop();
    await app.close();
  });

  const tokens = (more: Partial<ServiceTokensOptions> = {}) => {
    Object.assign(answer, { status: 200, body: undefined, mints: 0 });
    const clock = manualClock(Date.now());
    const options = {
      workload,
      endpoint: { host, port: https },
      clientId: 'service-wallet',
      log: runtime.log,
    };
    return { clock, token: createServiceTokens({ ...options, clock, ...more }) };
  };

  it('verifies users and services and follows revocations', async () => {
    const own = testRuntime('wallet');
    const at = (port: number) => ({ host, port });
    const tenant = tenantSession({
      runtime: own,
      workload,
      bus,
      config: {
        CHANCERY_TENANT_HTTPS: at(https),
        CHANCERY_TENANT_GRPC: at(grpc),
        CHANCERY_TENANT_MTLS: at(https),
      },
      clientId: 'service-wallet',
    });
    await expect(tenant.authenticate('x')).rejects.toMatchObject({ code: 'REVOCATIONS_STALE' });
    await tenant.revocations.start();
    const service = await tenant.authenticate(await tenant.token());
    expect(service).toMatchObject({ kind: 'service', clientId: 'service-wallet', scopes: ['wallets:sign'] });
    const jti = randomUUID();
    const token = await tokenOf({
      jti,
      aud: [`${testInstallation}:consumer`, 'platform:citizen-wallet'],
      sub: 'identity-1',
      token_type: 'user',
      tier: 'consumer',
      client_id: 'first-party',
    });
    expect(await tenant.authenticate(token)).toMatchObject({ kind: 'user', tier: 'consumer' });
    const expiresAtMs = BigInt(Date.now() + 600_000);
    revoked.push({ kind: RevocationKind.TOKEN, key: jti, notBeforeMs: 0n, expiresAtMs });
    const revokedAt = performance.now();
    bus.publish(SUBJECTS.tenantRevocations);
    await waitFor(() =>
      tenant.authenticate(token).then(
        () => false,
        () => true,
      ),
    );
    expect(performance.now() - revokedAt).toBeLessThan(1_000);
    tenant.stop();
  });

  it('service tokens are minted with the SVID and kept until 80 % of their life', async () => {
    const { clock, token } = tokens();
    const [one, two] = await Promise.all([token(), token()]);
    expect(one).toBe(two);
    expect(answer.mints).toBe(1);
    expect(answer.presented).toBe(workload.id);
    expect(answer.form).toBe('grant_type=client_credentials&client_id=service-wallet');
    clock.advance(740_000);
    expect(await token()).toBe(one);
    clock.advance(61_000);
    expect(await token()).not.toBe(one);
    expect(answer.mints).toBe(2);
  });

  it('a service token that cannot be renewed is used to its end', async () => {
    const { clock, token } = tokens();
    const held = await token();
    answer.status = 503;
    clock.advance(810_000);
    expect(await token()).toBe(held);
    expect(await token()).toBe(held);
    expect(answer.mints).toBe(2);
    clock.advance(200_000);
    await expect(token()).rejects.toMatchObject({ kind: 'unavailable' });
    answer.status = 200;
    expect(await token()).not.toBe(held);
  });

  it('a refusal differs from an outage and names the reason', async () => {
    const { token } = tokens();
    answer.status = 401;
    answer.body = { error: 'invalid_client', error_description: 'the certificate is not of this client' };
    await expect(token()).rejects.toMatchObject({
      kind: 'unauthenticated',
      code: 'SERVICE_TOKEN_REFUSED',
      message: expect.stringContaining('not of this client') as never,
    });
  });

  it('an answer without a token is an outage', async () => {
    const { token } = tokens();
    answer.body = { hello: 1 };
    await expect(token()).rejects.toMatchObject({ kind: 'unavailable' });
  });

  it('the token listener must be the tenant service', async () => {
    const other = createHttpServer({ runtime: testRuntime('other'), title: 'other', https: impostor });
    const port = await listenHttp(other, { host, port: 0 });
    const { token } = tokens({ endpoint: { host, port } });
    await expect(token()).rejects.toMatchObject({ kind: 'unavailable' });
    await other.close();
  });

  it('no listener at the address is an outage', async () => {
    const { token } = tokens({ endpoint: { host, port: 1 } });
    await expect(token()).rejects.toMatchObject({ kind: 'unavailable', code: 'SERVICE_UNAVAILABLE' });
  });
});

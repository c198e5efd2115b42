import { rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requestOverMtls } from '#kit/auth/mtls.ts';
import { type Clock, systemClock } from '#kit/clock/clock.ts';
import { createHttpServer, listenHttp } from '#kit/http/http.ts';
import { createLogger } from '#kit/log/log.ts';
import { createRpcClient, createRpcServer } from '#kit/rpc/rpc.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { connectWorkload, type IssuerSource, identityCheck, type Workload } from '#kit/workload/workload.ts';
import { RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { ROTATE_ANNOTATION } from './authority/keeper.ts';
import { IssuerWorld, installation } from './issuer.fixture.ts';

const log = createLogger({ service: 'test', level: 'silent' });
const clock = systemClock();
const expiry = 'chancery_wallet_identity_expiry_timestamp_seconds';
const registerId = `spiffe://${installation}/service/service-register`;

async function withWorkload(issuer: IssuerSource, act: (workload: Workload) => Promise<void>): Promise<void> {
  const workload = await connectWorkload({ issuer, log, clock });
  try {
    await act(workload);
  } finally {
    workload.stop();
  }
}

/** Repeats a call; resolves with the number of calls once stopped, rejects with the first failure. */
function keepCalling(call: () => Promise<void>) {
  let isOver = false;
  const run = async () => {
    let calls = 0;
    for (; !isOver; calls += 1) await call();
    return calls;
  };
  const running = run();
  return {
    stop: () => {
      isOver = true;
      return running;
    },
  };
}

/** One call over a new connection. */
async function callHttp(workload: Workload, port: number): Promise<void> {
  const address = { host: '127.0.0.1', port };
  const request = { workload, address, expect: registerId, method: 'GET', path: '/hello' } as const;
  expect((await requestOverMtls(request)).status).toBe(200);
}

async function serveRpc(workload: Workload) {
  const runtime = testRuntime('rpc');
  const authenticate = () => Promise.reject(new Error('nobody sends a token'));
  const server = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0, authenticate });
  const listRevocations = async () => ({ complete: true, revocations: [] });
  server.add(RevocationService, { listRevocations }, { allow: () => true });
  return { port: await server.listen(), stop: () => server.stop() };
}

function connectRpc(workload: Workload, port: number) {
  const runtime = testRuntime('rpc');
  const address = { host: '127.0.0.1', port };
  return createRpcClient(RevocationService, { address, workload, runtime, expect: registerId });
}

async function serve(workload: Workload) {
  const app = createHttpServer({ runtime: testRuntime('hello'), title: 'hello', https: workload });
  app.get('/hello', { config: { policy: 'Anonymous' }, schema: { hide: true } }, async () => 'hello');
  const port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
  return { port, stop: () => app.close() };
}

describe('rotating identities', () => {
  let world: IssuerWorld;

  beforeEach(async () => {
    world = await IssuerWorld.open(4);
  });
  afterEach(async () => {
    await world.stop();
  });

  it('fail no call while SVIDs and roots are rotated', { timeout: 40_000 }, async () => {
    const first = world.bundle;
    const register = world.pod('service-register', 'service-register-0');
    const wallet = world.pod('service-wallet', 'service-wallet-0');
    await withWorkload(register, async (server) => {
      const [http, rpc] = await Promise.all([serve(server), serveRpc(server)]);
      await withWorkload(wallet, async (client) => {
        const stub = connectRpc(client, rpc.port);
        const calling = [
          keepCalling(() => callHttp(client, http.port)),
          keepCalling(async () => {
            expect((await stub.listRevocations({})).complete).toBe(true);
          }),
        ];
        world.server.annotate('secrets', 'chancery-identity-authority', { [ROTATE_ANNOTATION]: 'now' });
        await waitFor(() => world.bundle !== first && world.bundle.includes(first));
        await waitFor(() => !world.bundle.includes(first), { deadlineMs: 20_000 });
        const isNew = ({ current }: Workload) => !current().ca.includes(first);
        await waitFor(() => isNew(client) && isNew(server));
        for (const one of calling) expect(await one.stop()).toBeGreaterThan(100);
        stub.close();
      });
      await Promise.all([http.stop(), rpc.stop()]);
    });
  });

  it('stay in use while the issuer is away, until they expire, and recover with it', {
    timeout: 20_000,
  }, async () => {
    const place = world.pod('service-wallet', 'service-wallet-0');
    await withWorkload(place, async (workload) => {
      const { telemetry } = testRuntime('wallet');
      const { check } = identityCheck(workload, { clock, telemetry });
      const ends = async () => (await telemetry.registry.getSingleMetric(expiry)?.get())?.values[0]?.value;
      await world.stopIssuer();
      const held = workload.current();
      check();
      expect(await ends()).toBe(held.expiresAtMs / 1_000);
      const expired: Clock = { ...clock, nowMs: () => held.expiresAtMs };
      expect(identityCheck(workload, { clock: expired, telemetry }).check).toThrow(
        expect.objectContaining({ code: 'WORKLOAD_IDENTITY_EXPIRED' }),
      );
      await waitFor(() => {
        expect(check).toThrow();
        return true;
      });
      expect(workload.current().expiresAtMs).toBeLessThanOrEqual(Date.now());
      await world.startIssuer();
      await waitFor(() => {
        check();
        return true;
      });
      expect(await ends()).toBeGreaterThan(held.expiresAtMs / 1_000);
    });
  });

  it('that do not arrive are logged each time the issuer is away', { timeout: 20_000 }, async () => {
    const runtime = testRuntime('wallet', { level: 'warn' });
    const issuer = world.pod('service-wallet', 'service-wallet-0');
    const workload = await connectWorkload({ issuer, log: runtime.log, clock });
    const told = () => runtime.lines.filter(({ msg }) => msg === 'no new identity; trying again').length;
    for (const _ of ['once', 'again']) {
      const before = told();
      await world.stopIssuer();
      await waitFor(() => told() > before);
      const { cert } = workload.current();
      await world.startIssuer();
      await waitFor(() => workload.current().cert !== cert);
    }
    workload.stop();
  });

  it('are requested with the present token and roots', { timeout: 20_000 }, async () => {
    const place = world.pod('service-wallet', 'service-wallet-0');
    await withWorkload(place, async (workload) => {
      const before = world.server.requests.length;
      writeFileSync(place.tokenFile, 'stale');
      await waitFor(() => world.server.requests.slice(before).some((line) => line.includes('tokenreviews')));
      const held = workload.current();
      place.refresh();
      await waitFor(() => workload.current().cert !== held.cert);
    });
  });
});

describe('a workload that requests SVIDs from the issuer', () => {
  let world: IssuerWorld;

  beforeEach(async () => {
    world = await IssuerWorld.open();
  });
  afterEach(async () => {
    await world.stop();
  });

  const connect = (issuer: IssuerSource) => connectWorkload({ issuer, log, clock, firstSvidTimeoutMs: 500 });

  it('waits for its token and for the roots', async () => {
    const place = world.pod('validator-main', 'main-0');
    rmSync(place.tokenFile);
    rmSync(place.caFile);
    const waiting = connectWorkload({ issuer: place, log, clock });
    place.refresh();
    const workload = await waiting;
    expect(workload.id).toBe(`spiffe://${installation}/service/validator-main-0`);
    workload.stop();
  });

  it('reports why it has no identity', async () => {
    const place = world.pod('service-tenant', 'service-tenant-0');
    await expect(connect(place)).rejects.toMatchObject({
      code: 'WORKLOAD_IDENTITY_MISSING',
      message: expect.stringContaining('IDENTITY_FORBIDDEN: The ServiceAccount has no identity.'),
    });
    const without = { ...world.pod('service-wallet', 'a'), tokenFile: '/nowhere/token' };
    await expect(connect(without)).rejects.toThrow('/nowhere/token cannot be read (ENOENT)');
  });

  it('sends its token to the issuer only', async () => {
    const place = world.pod('service-wallet', 'service-wallet-0');
    const register = await connectWorkload({
      issuer: world.pod('service-register', 'service-register-0'),
      log,
      clock,
    });
    const served = await serve(register);
    const other = { ...place, url: `https://127.0.0.1:${served.port}` };
    await expect(connect(other)).rejects.toThrow(`the server is ${registerId}, not`);
    const foreign = { ...place, installation: 'other.local' };
    await expect(connect(foreign)).rejects.toThrow('not spiffe://other.local/service/svid-issuer');
    register.stop();
    await served.stop();
  });

  it('does not trust an issuer of other roots', async () => {
    const other = await IssuerWorld.open();
    const place = { ...world.pod('service-wallet', 'service-wallet-0'), url: other.url };
    await expect(connect(place)).rejects.toMatchObject({ code: 'WORKLOAD_IDENTITY_MISSING' });
    expect(other.server.requests.filter((line) => line.includes('tokenreviews'))).toEqual([]);
    await other.stop();
  });
});

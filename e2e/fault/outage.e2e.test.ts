import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Api, createApi } from '../harness/api.ts';
import { checkEvidence, collectEvidence, fetchDockets } from '../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  type Wallet,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { inParallel, until } from '../harness/wait.ts';
import { type GivenParts, startGivenParts } from './given-parts.ts';
import { SteadyLoad } from './steady-load.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const rounds = full ? 10 : 1;
const recoveryMs = 15_000;
/** Longer than the view of revocations may be old: everything is refused until it is fresh again. */
const longOutageMs = 75_000;

describe('a given database and a given bus that go away and come back', () => {
  let dataDir = '';
  let parts: GivenParts;
  let system: LocalSystem;
  let api: Api;
  let token = '';
  let owner: Wallet;
  let registerId = '';

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-outage-'));
    parts = await startGivenParts();
    system = await startSystem({ dataDir, env: parts.env });
    api = createApi(system.state.gatewayUrl);
    token = (await signIn(api, system.state)).access_token;
    owner = await createWallet(api, token, 'ED25519');
    registerId = await createRegister(api, token, 'Outage register', owner);
    await waitOnline(api, token, registerId);
  });

  afterAll(async () => {
    await system.stop();
    await parts.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const loads: SteadyLoad[] = [];
  const load = (): SteadyLoad => {
    const begun = new SteadyLoad({ api, token, registerId, workers: 4, pauseMs: 50 });
    loads.push(begun);
    return begun;
  };
  afterEach(() => Promise.all(loads.map((begun) => begun.stop())));

  const grows = (what: string, size: () => number, by: number): Promise<true> => {
    const goal = size() + by;
    return until(what, recoveryMs, async () => (size() >= goal ? true : undefined));
  };

  /** A new sign-in, a submission through every service and its confirmation, within the promised time. */
  async function recovers(): Promise<void> {
    const startedAt = performance.now();
    const left = (): number => Math.max(1, recoveryMs - (performance.now() - startedAt));
    const password = await until('sign-in works again', left(), async () => {
      const found = await signIn(api, system.state).catch(() => undefined);
      return found?.access_token;
    });
    const txId = await until('a submission is taken again', left(), async () =>
      submitThroughRegister(api, password, {
        registerId,
        sender: owner.walletAddress,
        payload: { after: 'the outage', at: Date.now() },
      }).catch(() => undefined),
    );
    await waitConfirmed(api, token, registerId, txId);
    await until('health is good again', left(), async () => {
      const answer = await api.send('GET', '/api/health');
      return (answer.body as { status?: string }).status === 'healthy' ? true : undefined;
    });
    expect(performance.now() - startedAt).toBeLessThan(recoveryMs);
  }

  /** Everything accepted is sealed exactly once, and nothing that was seen confirmed is missing. */
  async function nothingIsLost(under: SteadyLoad): Promise<void> {
    await inParallel([...under.accepted], 8, (txId) => waitConfirmed(api, token, registerId, txId));
    const dockets = await fetchDockets(api, token, `/api/registers/${registerId}`);
    const sealed = dockets.flatMap((docket) => docket.transactionIds);
    expect(new Set(sealed).size).toBe(sealed.length);
    const there = new Set(sealed);
    expect([...under.accepted, ...under.confirmed].filter((txId) => !there.has(txId))).toEqual([]);
  }

  test('local mode starts on them and says so', () => {
    expect(system.output()).toContain('Database given, bus given, identity embedded');
    expect(system.state.processes.map(({ name }) => name)).not.toContain('postgres');
  });

  test('PostgreSQL stopped and started under load: fail closed, recover alone, lose and repeat nothing', async () => {
    const under = load();
    for (let round = 0; round < rounds; round++) {
      await grows('the load is accepted', () => under.accepted.size, 30);
      await parts.stopDatabase();
      await grows('submissions are refused', () => under.refused, 8);
      const signedOut = await api.send('POST', '/api/service-auth/token', {
        form: { grant_type: 'password', username: system.state.adminEmail, password: 'x' },
      });
      expect(signedOut.status).toBe(503);
      await parts.startDatabase();
      await recovers();
      await grows('the load is accepted again', () => under.accepted.size, 30);
    }
    await under.stop();
    expect(under.unexpected).toEqual([]);
    await nothingIsLost(under);
  }, 600_000);

  test(`PostgreSQL killed under load ${rounds} times: what it had committed is there, nothing is repeated`, async () => {
    const under = load();
    for (let round = 0; round < rounds; round++) {
      await grows('the load is accepted', () => under.accepted.size, 20);
      await parts.crashDatabase();
      await grows('submissions are refused', () => under.refused, 4);
      await parts.startDatabase();
      await recovers();
    }
    await under.stop();
    expect(under.unexpected).toEqual([]);
    await nothingIsLost(under);
  }, 600_000);

  test.runIf(full)(
    'an outage longer than the life of the revocation view ends by itself',
    async () => {
      await parts.stopDatabase();
      const refusedFrom = performance.now();
      await until('the outage is long', longOutageMs * 2, async () => {
        const { status } = await api.send('GET', '/api/wallets', { token });
        expect(status).toBe(503);
        return performance.now() - refusedFrom > longOutageMs ? true : undefined;
      });
      await parts.startDatabase();
      await recovers();
    },
    300_000,
  );

  test('an answer that was refused during the outage may be repeated afterwards with one effect', async () => {
    const key = createOutsideKey();
    const sign = (n: number) => signSubmission(key, { registerId, payload: { again: n } });
    let submission = sign(0);
    const send = () => api.send('POST', '/api/v1/transactions/validate', { token, json: submission });
    await parts.stopDatabase();
    // Until the first failed call, or a second after the last answer, new transactions are accepted without the database.
    const during = await until('a submission is refused', recoveryMs, async () => {
      submission = sign(Date.now());
      const answer = await send();
      return answer.status === 200 ? undefined : answer;
    });
    expect(during.status).toBe(503);
    expect(during.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(during.body).toMatchObject({ code: expect.any(String), error: expect.any(String) });
    await parts.startDatabase();
    await until('the same submission is taken', recoveryMs, async () =>
      (await send()).status === 200 ? true : undefined,
    );
    expect((await send()).body).toMatchObject({ added: false, alreadyKnown: true });
    await waitConfirmed(api, token, registerId, submission.TransactionId);
  });

  test('the bus stopped and started under load: nothing waits for it and nothing is lost', async () => {
    const under = load();
    for (let round = 0; round < rounds; round++) {
      await grows('the load is accepted', () => under.accepted.size, 20);
      await parts.stopBus();
      await grows('the load is accepted without the bus', () => under.accepted.size, 30);
      await grows('confirmations go on without the bus', () => under.confirmed.size, 10);
      await recovers();
      await parts.startBus();
      await recovers();
      await grows('the load is accepted again', () => under.accepted.size, 20);
    }
    await under.stop();
    expect([under.unexpected, under.refused]).toEqual([[], 0]);
    await nothingIsLost(under);
  }, 600_000);

  test('a token that is revoked without the bus is refused within seconds', async () => {
    const { access_token: doomed } = await signIn(api, system.state);
    await api.expect(200, 'GET', '/api/wallets', { token: doomed });
    await parts.stopBus();
    await api.expect(200, 'POST', '/api/auth/logout', { token: doomed, json: {} });
    await until('the wallet service refuses', 2_000, async () =>
      (await api.send('GET', '/api/wallets', { token: doomed })).status === 401 ? true : undefined,
    );
    await parts.startBus();
  });

  test('after all outages the whole register verifies offline', async () => {
    const evidence = await collectEvidence(api, token, registerId);
    expect(checkEvidence(evidence)).toMatch(/^[0-9a-f]{64}$/);
    // the long form reads some ten thousand transactions one by one
  }, 600_000);
});

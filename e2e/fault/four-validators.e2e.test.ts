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
import { healthOf } from '../harness/ops.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { consensusMetrics, setStatus, validationStatus } from '../harness/validation.ts';
import { inParallel, until } from '../harness/wait.ts';
import { SteadyLoad } from './steady-load.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const four = ['validator-0', 'validator-1', 'validator-2', 'validator-3'];
/** The gateway talks to the first one until that cannot be reached. */
const first = 'validator-0';
const second = 'validator-2';
const third = 'validator-3';
/** leaderTimeoutMs of the default policy, and the two seconds that the pause may take beside it. */
const pauseMs = 3_000 + 2_000;
/** What a busy machine may add. */
const slackMs = 5_000;
const recoveryMs = 30_000;
const kills = full ? 20 : 2;

describe('four validators, each a process of its own', () => {
  let dataDir = '';
  let system: LocalSystem;
  let api: Api;
  let token = '';
  let owner: Wallet;
  let registerId = '';
  /** A register that began while the first validator was away, and has the other three as members. */
  let registerOfThree = '';

  const signedIn = async (): Promise<void> => {
    api = createApi(system.state.gatewayUrl);
    token = (await signIn(api, system.state)).access_token;
  };

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-four-'));
    system = await startSystem({ dataDir, args: ['--processes', '--validators', '4'], deadlineMs: 90_000 });
    await signedIn();
    owner = await createWallet(api, token, 'ED25519');
    registerId = await createRegister(api, token, 'Four validators', owner);
    await waitOnline(api, token, registerId);
  });
  afterAll(async () => {
    await system.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const loads: SteadyLoad[] = [];
  const load = (): SteadyLoad => {
    const begun = new SteadyLoad({ api, token, registerId, workers: 2, pauseMs: 50 });
    loads.push(begun);
    return begun;
  };
  afterEach(async () => {
    await Promise.all(loads.map((begun) => begun.stop()));
  });

  const base = () => `/api/registers/${registerId}`;
  const submit = (payload: unknown) =>
    submitThroughRegister(api, token, { registerId, sender: owner.walletAddress, payload });
  const status = () => setStatus(api, token, registerId);
  const sealedCount = async (): Promise<number> => {
    const answer = await api.expect(200, 'GET', `${base()}/transactions?pageSize=1`, { token });
    return (answer.body as { totalCount: number }).totalCount;
  };
  /** Waits for `by` more sealed transactions; gives how long that took, milliseconds. */
  const sealsMore = async (by: number, deadlineMs = recoveryMs): Promise<number> => {
    const startedAt = performance.now();
    const goal = (await sealedCount()) + by;
    await until(`${by} more sealed`, deadlineMs, async () =>
      (await sealedCount()) >= goal ? true : undefined,
    );
    return performance.now() - startedAt;
  };
  const becomes = (what: string, holds: (now: Awaited<ReturnType<typeof status>>) => boolean) =>
    until(what, recoveryMs, async () => {
      const now = await status();
      return holds(now) ? now : undefined;
    });

  const opsOf = (id: string) =>
    system.current().validators.find(({ validatorId }) => validatorId === id)?.ops ?? '';
  const healthBecomes = (id: string, wanted: string) =>
    until(`${id} to be ${wanted}`, recoveryMs, async () => {
      const now = await healthOf(opsOf(id));
      return now.status === wanted ? now : undefined;
    });

  /** Everything accepted is sealed exactly once. */
  async function nothingLostOrDoubled(accepted: Iterable<string>): Promise<void> {
    await inParallel([...accepted], 8, (txId) => waitConfirmed(api, token, registerId, txId));
    const dockets = await fetchDockets(api, token, base());
    const sealed = dockets.flatMap((docket) => docket.transactionIds);
    expect(new Set(sealed).size).toBe(sealed.length);
    const there = new Set(sealed);
    expect([...accepted].filter((txId) => !there.has(txId))).toEqual([]);
  }

  test('vote together: three of them sign each docket, and status names all four', async () => {
    await waitConfirmed(api, token, registerId, await submit({ n: 1 }));
    const dockets = await fetchDockets(api, token, base());
    expect(dockets.length).toBeGreaterThan(1);
    for (const { certificate } of dockets) {
      const signers = certificate.signatures.map(({ validatorId }) => validatorId);
      expect(new Set(signers).size).toBeGreaterThanOrEqual(3);
      expect(signers.filter((id) => !four.includes(id))).toEqual([]);
    }
    const now = await becomes('all four stand at the same docket', ({ members }) =>
      members.every(
        ({ reachable, lastDocketNumber }) => reachable && lastDocketNumber === dockets.length - 1,
      ),
    );
    expect(now).toMatchObject({ status: 'Running', quorum: 3, validatorSetSize: 4, operational: 4 });
    const metrics = await consensusMetrics(api, token);
    const own = metrics.byRegister.find((one) => one.registerId === registerId);
    expect(own).toMatchObject({ registerId, quorum: 3, quorumAvailable: true });
    expect(metrics.votesCast).toBeGreaterThan(0);
  });

  test('local.json lists each with its address', () => {
    expect(system.state.validators.map(({ validatorId }) => validatorId)).toEqual(four);
    const names = system.state.processes.map(({ name }) => name);
    expect(names.filter((name) => name.startsWith('validator-')).toSorted()).toEqual(four);
  });

  test('kill -9 of the validator that the gateway uses: sealing continues, and the status names it as unreachable', async () => {
    const under = load();
    await sealsMore(5);
    system.killOne(first);
    const pausesMs: number[] = [];
    for (let n = 0; n < 8; n += 1) pausesMs.push(await sealsMore(1));
    const now = await becomes('the dead one is named', ({ operational }) => operational === 3);
    expect(now).toMatchObject({ status: 'Running', quorumAvailable: true });
    expect(now.members.find(({ validatorId }) => validatorId === first)?.reachable).toBe(false);
    const { validators } = await validationStatus(api, token);
    expect(validators).toContainEqual(expect.objectContaining({ validatorId: first, reachable: false }));
    expect(system.output()).toContain(`${first} ended: SIGKILL. 3 of 4 validators run`);
    expect(system.current().processes.map(({ name }) => name)).not.toContain(first);
    await under.stop();
    expect(under.unexpected.filter((answer) => answer.status !== 502)).toEqual([]);
    expect(Math.max(...pausesMs)).toBeLessThan(pauseMs + slackMs);
  });

  test('a register that begins meanwhile has the other three as its members', async () => {
    registerOfThree = await createRegister(api, token, 'Three validators', owner);
    await waitOnline(api, token, registerOfThree);
    const { members, quorum } = await setStatus(api, token, registerOfThree);
    expect([members.map(({ validatorId }) => validatorId), quorum]).toEqual([four.slice(1), 3]);
  });

  test('kill -9 of a second one: transactions are taken, none is sealed, and status says why', async () => {
    system.killOne(second);
    const lost = await becomes('no quorum', (now) => now.status === 'WaitingForValidators');
    expect(lost).toMatchObject({ operational: 2, quorumAvailable: false });
    const { code, checks } = await healthBecomes(third, 'Degraded');
    const stale = checks.find(({ name }) => name === 'quorum')?.error;
    expect([code, stale]).toEqual([200, expect.stringMatching(/^stale: .* of register .*, a quorum is 3/)]);
    const before = (await fetchDockets(api, token, base())).length;
    const waiting = await inParallel([1, 2, 3, 4, 5], 5, (n) => submit({ waits: n }));
    await becomes(
      'the two that are left have voted',
      ({ members }) => members.filter(({ step }) => step === 'prevote' || step === 'precommit').length === 2,
    );
    expect((await fetchDockets(api, token, base())).length).toBe(before);
    for (const txId of waiting) {
      const answer = await api.expect(200, 'GET', `${base()}/transactions/${txId}`, { token });
      expect(answer.body).toMatchObject({ status: 'pending' });
    }
    const refused = await api.send('POST', `${base()}/dockets/seal`, { token });
    expect([refused.status, (refused.body as { code: string }).code]).toEqual([503, 'QUORUM_UNAVAILABLE']);
    await system.again(second);
    await nothingLostOrDoubled(waiting);
    expect(await becomes('it runs again', (now) => now.status === 'Running')).toMatchObject({
      operational: 3,
    });
    await healthBecomes(third, 'Healthy');
  });

  test('one that comes back catches up and signs again', async () => {
    await system.again(first);
    await becomes('all four stand at the same docket', ({ members, lastDocketNumber }) =>
      members.every((member) => member.reachable && member.lastDocketNumber === lastDocketNumber),
    );
    await until('its signature is in a docket', recoveryMs, async () => {
      await waitConfirmed(api, token, registerId, await submit({ back: Date.now() }));
      const latest = await api.expect(200, 'GET', `${base()}/dockets/latest`, { token });
      const { certificate } = latest.body as { certificate: { signatures: { validatorId: string }[] } };
      return certificate.signatures.some(({ validatorId }) => validatorId === first) ? true : undefined;
    });
    await nothingLostOrDoubled(loads.flatMap(({ accepted }) => [...accepted]));
    await expect(system.again(first)).rejects.toThrow(`${first} runs already`);
  });

  test('pause and resume act on every member', async () => {
    const act = (name: string) =>
      api.expect(200, 'POST', `/api/admin/validation/${name}/${registerId}`, { token });
    expect((await act('pause')).body).toMatchObject({ status: 'Paused', message: 'Validation is Paused' });
    const paused = await status();
    expect([paused.status, new Set(paused.members.map((member) => member.status))]).toEqual([
      'Paused',
      new Set(['Paused']),
    ]);
    const txId = await submit({ paused: Date.now() });
    const waiting = await api.expect(200, 'GET', `${base()}/transactions/${txId}`, { token });
    expect(waiting.body).toMatchObject({ status: 'pending' });
    expect((await act('resume')).body).toMatchObject({ members: four.map(() => ({ status: 'Running' })) });
    await waitConfirmed(api, token, registerId, txId);
    const stop = await api.send('POST', `/api/admin/validation/stop/${registerId}`, { token });
    expect([stop.status, (stop.body as { code: string }).code]).toEqual([409, 'QUORUM_WOULD_BREAK']);
  });

  test(`${kills} kills one after the other under load lose nothing`, async () => {
    const under = load();
    for (let n = 0; n < kills; n += 1) {
      const victim = four[n % four.length] ?? third;
      await sealsMore(5);
      system.killOne(victim);
      await sealsMore(5);
      await system.again(victim);
      await becomes('it has caught up', ({ operational, members, lastDocketNumber }) => {
        const back = members.find(({ validatorId }) => validatorId === victim);
        return operational === 4 && (back?.lastDocketNumber ?? 0) >= lastDocketNumber - 1;
      });
    }
    await under.stop();
    await nothingLostOrDoubled(under.accepted);
  }, 600_000);

  test('sealing continues after a restart of everything, with the same number of validators', async () => {
    const under = load();
    await sealsMore(5);
    await under.stop();
    await system.kill();
    await expect(startSystem({ dataDir, args: ['--processes', '--validators', '3'] })).rejects.toThrow(
      / has 4 validators since its first start; leave --validators out/,
    );
    system = await startSystem({ dataDir, args: ['--processes'], deadlineMs: 90_000 });
    await signedIn();
    expect(system.state.validators).toHaveLength(4);
    await waitConfirmed(api, token, registerId, await submit({ after: 'the restart' }));
    await nothingLostOrDoubled(loads.flatMap(({ accepted }) => [...accepted]));
    checkEvidence(await collectEvidence(api, token, registerId));
  }, 300_000);

  test('one that is no member hands a transaction on', async () => {
    const json = signSubmission(createOutsideKey(), { registerId: registerOfThree, payload: { by: first } });
    const answer = await api.expect(200, 'POST', '/api/v1/transactions/validate', { token, json });
    expect(answer.body).toMatchObject({ added: true, registerId: registerOfThree });
    await waitConfirmed(api, token, registerOfThree, json.TransactionId);
    const wrong = { ...json, PayloadHash: '00'.repeat(32) };
    const refused = await api.send('POST', '/api/v1/transactions/validate', { token, json: wrong });
    expect([refused.status, (refused.body as { code: string }).code]).toEqual([400, 'VAL_HASH_001']);
  });
});

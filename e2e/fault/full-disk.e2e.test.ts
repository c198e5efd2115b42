import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
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
import { openSmallDisks } from '../harness/small-disk.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { setStatus, validationStatus } from '../harness/validation.ts';
import { inParallel, until } from '../harness/wait.ts';
import { SteadyLoad } from './steady-load.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const rounds = full ? 10 : 1;
const four = ['validator-0', 'validator-1', 'validator-2', 'validator-3'] as const;
const alone = 'validator-2';
const waitMs = 60_000;

const small = process.platform === 'linux' ? await openSmallDisks() : undefined;

describe.runIf(small !== undefined)('validators whose disk is full', () => {
  let dataDir = '';
  let system: LocalSystem | undefined;
  let api: Api;
  let token = '';
  let owner: Wallet;
  let registerId = '';
  let load: SteadyLoad | undefined;
  const accepted = new Set<string>();

  /** The log of one validator is on the first disk, those of the other three are on the second. */
  function placeLogs(): void {
    // what a first start with four validators leaves
    writeFileSync(join(dataDir, 'validators.count'), `${four.length}\n`);
    const [first, second] = small?.disks ?? [];
    for (const id of four) {
      const log = join((id === alone ? first : second)?.path ?? '', `${id}-${Date.now()}`);
      mkdirSync(log, { recursive: true });
      mkdirSync(join(dataDir, 'validators', id), { recursive: true });
      symlinkSync(log, join(dataDir, 'validators', id, 'log'));
    }
  }

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-full-disk-'));
    placeLogs();
    system = await startSystem({ dataDir, args: ['--validators', '4'], deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    token = (await signIn(api, system.state)).access_token;
    owner = await createWallet(api, token, 'ED25519');
    registerId = await createRegister(api, token, 'Full disk', owner);
    await waitOnline(api, token, registerId);
  });
  afterAll(async () => {
    await load?.stop();
    await system?.stop();
    small?.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  afterEach(() => load?.stop());

  const dockets = () => fetchDockets(api, token, `/api/registers/${registerId}`);
  /** Undefined for one that does not answer. */
  const isPaused = async (id: string): Promise<boolean | undefined> => {
    const { validators } = await validationStatus(api, token);
    const found = validators.find(({ validatorId, reachable }) => validatorId === id && reachable);
    return found?.conditions.some(({ type, reason }) => type === 'Paused' && reason === 'disk full');
  };
  const healthOf = async (id: string): Promise<string> => {
    const ops = system?.state.validators.find(({ validatorId }) => validatorId === id)?.ops;
    return (await fetch(`http://${ops}/health`)).text();
  };
  const begin = (): SteadyLoad => {
    load = new SteadyLoad({ api, token, registerId, workers: 2, pauseMs: 50 });
    return load;
  };
  const end = async (under: SteadyLoad): Promise<void> => {
    await under.stop();
    for (const txId of under.accepted) accepted.add(txId);
    expect(under.unexpected).toEqual([]);
  };

  test(`one of four, ${rounds} times: it pauses and says so, the others seal without it, and it comes back`, async () => {
    for (let round = 0; round < rounds; round += 1) {
      const under = begin();
      small?.disks[0].fill();
      await until('it is paused', waitMs, async () => (await isPaused(alone)) || undefined);
      expect(await healthOf(alone)).toMatch(/"status":"Degraded".*Paused: disk full/);
      const now = await until('the others run', waitMs, async () => {
        const seen = await setStatus(api, token, registerId);
        return seen.status === 'Running' && seen.operational === 3 ? seen : undefined;
      });
      expect(now.members.find(({ validatorId }) => validatorId === alone)).toMatchObject({
        status: 'Paused',
        reason: 'disk full',
      });
      const before = (await dockets()).length;
      await until('the others seal', waitMs, async () =>
        (await dockets()).length > before + 2 ? true : undefined,
      );
      for (const { certificate } of (await dockets()).slice(-2)) {
        expect(certificate.signatures.map(({ validatorId }) => validatorId)).not.toContain(alone);
      }
      small?.disks[0].free();
      await until('it goes on', waitMs, async () => ((await isPaused(alone)) === false ? true : undefined));
      await end(under);
    }
  });

  test('all four: 503 with a reason, what is sealed can be read, and no docket is there half', async () => {
    const under = begin();
    for (const disk of small?.disks ?? []) disk.fill();
    await until('all are paused', waitMs, async () => {
      const paused = await Promise.all(four.map(isPaused));
      return paused.every((is) => is === true) ? true : undefined;
    });
    await end(under);
    const submission = signSubmission(createOutsideKey(), { registerId, payload: { no: 'room' } });
    const answer = await api.send('POST', '/api/v1/transactions/validate', { token, json: submission });
    expect(answer.status).toBe(503);
    expect(answer.body).toMatchObject({
      code: 'VALIDATOR_PAUSED',
      error: 'This validator is Paused: disk full',
      isValid: false,
      added: false,
    });
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    await until('the set says so', waitMs, async () => {
      const { status, operational } = await setStatus(api, token, registerId);
      return status === 'Paused' && operational === 0 ? true : undefined;
    });
    checkEvidence(await collectEvidence(api, token, registerId));
  });

  test('with room again all go on by themselves; nothing accepted is lost, nothing is there twice', async () => {
    for (const disk of small?.disks ?? []) disk.free();
    await until('nobody is paused', waitMs, async () => {
      const paused = await Promise.all(four.map(isPaused));
      return paused.every((is) => is === false) ? true : undefined;
    });
    const later = await until('a submission is taken again', waitMs, async () =>
      submitThroughRegister(api, token, {
        registerId,
        sender: owner.walletAddress,
        payload: { room: 'again', at: Date.now() },
      }).catch(() => undefined),
    );
    accepted.add(later);
    await inParallel([...accepted], 8, (txId) => waitConfirmed(api, token, registerId, txId));
    await until('all four stand at the same docket', waitMs, async () => {
      const { members, lastDocketNumber } = await setStatus(api, token, registerId);
      return members.every((each) => each.lastDocketNumber === lastDocketNumber) ? true : undefined;
    });
    const sealed = (await dockets()).flatMap((docket) => docket.transactionIds);
    expect(new Set(sealed).size).toBe(sealed.length);
    expect([...accepted].filter((txId) => !sealed.includes(txId))).toEqual([]);
    checkEvidence(await collectEvidence(api, token, registerId));
  });
});

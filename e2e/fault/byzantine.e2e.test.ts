import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { proposerOf } from '#core/ledger/consensus.ts';
import { type Api, createApi } from '../harness/api.ts';
import { conditionsOf, convictionsOf, isProof, openProposals } from '../harness/convictions.ts';
import { checkEvidence, collectEvidence, fetchDockets } from '../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  signIn,
  type Wallet,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { healthOf, metricOf } from '../harness/ops.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { type OwnProcess, startLike, startOf } from '../harness/running-process.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { setStatus } from '../harness/validation.ts';
import { inParallel, until } from '../harness/wait.ts';
import {
  type Draft,
  docketAt,
  draftDocket,
  ledgerTime,
  lookAt,
  madeUp,
  proposed,
  type Said,
  type View,
} from './lies.ts';
import { LyingMember } from './lying-member.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const honest = ['validator-0', 'validator-1', 'validator-2'];
const [one = '', ...others] = honest;
const liarId = 'validator-3';
const recoveryMs = 60_000;
const repetitions = full ? 20 : 1;
/** Longer than a busy machine needs between the acceptance of a transaction and the lie about it. */
const leaderTimeoutMs = 15_000;
const timeout = full ? 1_800_000 : 300_000;
/** Pieces of evidence kept about a member. */
const mostKept = 8;

const submitted = z.object({ txId: z.string(), status: z.string() });
const equivocations = 'chancery_validator_consensus_equivocations_total';
const faults = 'chancery_validator_peer_faults_total';
const aheadSeconds = 'chancery_validator_clock_ahead_seconds';

describe.runIf(process.platform === 'linux')('four validators of which one is wrong', { timeout }, () => {
  let dataDir = '';
  let system: LocalSystem;
  let api: Api;
  let token = '';
  let owner: Wallet;
  let skewed: OwnProcess | undefined;
  let liar: LyingMember;
  /** All four are honest, the last has a wrong clock. */
  let early = '';
  /** Three honest ones, and the liar. */
  let registerId = '';
  let proposalId = '';

  const key = createOutsideKey();
  let count = 0;

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-byzantine-'));
    system = await startSystem({ dataDir, args: ['--processes', '--validators', '4'], deadlineMs: 240_000 });
    api = createApi(system.state.gatewayUrl);
    token = (await signIn(api, system.state)).access_token;
    owner = await createWallet(api, token, 'ED25519');
    early = await createRegister(api, token, 'A wrong clock', owner);
    await waitOnline(api, token, early);
  }, timeout);
  afterAll(async () => {
    await skewed?.kill();
    await liar?.stop();
    await system?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const opsOf = (id: string) =>
    system.state.validators.find(({ validatorId }) => validatorId === id)?.ops ?? '';
  const dockets = (of = registerId) => fetchDockets(api, token, `/api/registers/${of}`);
  const status = (of = registerId) => setStatus(api, token, of);
  const confirmed = (txIds: readonly string[], of = registerId) =>
    inParallel(txIds, 8, (txId) => waitConfirmed(api, token, of, txId));

  /** Has the first validator take some transactions, which tells the others. */
  async function accept(howMany: number, of = registerId): Promise<string[]> {
    return inParallel(Array.from({ length: howMany }), howMany, async () => {
      count += 1;
      const json = signSubmission(key, { registerId: of, payload: { count } });
      await api.expect(200, 'POST', '/api/v1/transactions/validate', { token, json });
      return json.TransactionId;
    });
  }

  async function seal(howMany = 1, of = registerId): Promise<void> {
    for (let n = 0; n < howMany; n += 1) await confirmed(await accept(1, of), of);
  }

  /** Sends a control transaction and waits until it is sealed. */
  async function decide(path: string, json: object): Promise<void> {
    const { body } = await api.expect(202, 'POST', path, { token, json });
    await confirmed([submitted.parse(body).txId]);
  }

  /** Seals until the liar is the proposer; what it has to know then. */
  async function itsTurn(): Promise<View> {
    for (let n = 0; n < 4; n += 1) {
      const view = await lookAt(api, token, registerId);
      const isIts = (ahead: number) =>
        proposerOf(view.members, view.height + ahead, 0).validatorId === liarId;
      const ahead = [0, 1, 2, 3].find(isIts);
      if (ahead === 0) return view;
      await seal(ahead);
    }
    throw new Error('the liar is never the proposer');
  }

  /** Transactions that everybody wants to seal, and the liar has. */
  async function given(howMany: number): Promise<string[]> {
    const txIds = await accept(howMany);
    await until('the liar has been told', recoveryMs, async () =>
      txIds.every((txId) => liar.records.has(txId)) ? true : undefined,
    );
    return txIds;
  }

  function draft(view: View, txIds: readonly string[], laterMs = 0): Draft {
    const records = txIds.flatMap((txId) => liar.records.get(txId)?.record ?? []);
    return draftDocket(view, liar.key.address, records, ledgerTime(laterMs));
  }

  const propose = (to: readonly string[], view: View, docket: Draft) =>
    liar.say(to, registerId, liar.pen.proposal(view, docket, { round: 0 }));
  const approve = (to: readonly string[], view: View, { header }: Draft) =>
    liar.say(to, registerId, ...liar.pen.approval(view, header, { round: 0 }));

  /** The docket of a height, which each honest member and the register service have and no other one. */
  async function decidedAt(height: number) {
    const docket = await docketAt(api, token, registerId, height);
    expect(await liar.decidedAt(registerId, height)).toEqual(honest.map(() => docket.hash));
    return docket;
  }

  const counted = (name: string, labels = '') =>
    inParallel(honest, honest.length, (id) => metricOf(opsOf(id), name, labels));

  /** Every honest member holds a proof, which anybody can check, that the liar said two things at one place. */
  const caught = (height: number, step: 'proposal' | 'prevote' | 'precommit') =>
    until(`evidence of two of a kind at ${height}, ${step}`, recoveryMs, async () => {
      const all = await convictionsOf(api, token, registerId);
      expect(all.flatMap(({ validatorIds }) => validatorIds).filter((id) => id !== liarId)).toEqual([]);
      const found = all.find((each) => each.height === height && each.step === step);
      if (found?.heldBy.length !== honest.length) return all.length >= mostKept ? true : undefined;
      expect([found.heldBy, found.signers[0]?.publicKey]).toEqual([honest, liar.key.publicKey]);
      expect(isProof(found)).toBe(true);
      return true;
    });

  function assertInOrder(all: Awaited<ReturnType<typeof dockets>>): void {
    const times = all.map(({ timestamp }) => timestamp);
    expect(times.toSorted()).toEqual(times);
    expect(new Set(times).size).toBe(times.length);
    expect(Date.parse(times.at(-1) ?? '')).toBeLessThanOrEqual(Date.now());
  }

  test('a clock that is a minute ahead proposes in vain, the others seal, and it says what is wrong', async () => {
    const start = startOf(system.current().processes.find(({ name }) => name === liarId)?.pid);
    system.killOne(liarId);
    await until('it has ended', recoveryMs, async () =>
      system.current().processes.some(({ name }) => name === liarId) ? undefined : true,
    );
    const clock = new URL('./skewed-clock.ts', import.meta.url);
    skewed = await startLike(start, { NODE_OPTIONS: `--import=${clock}?aheadMs=60000` });
    const health = await until('it notices', recoveryMs, async () => {
      const now = await healthOf(opsOf(liarId));
      return now.status === 'Degraded' ? now : undefined;
    });
    expect([health.code, health.checks.find(({ name }) => name === 'clock')?.error]).toEqual([
      200,
      expect.stringMatching(/the clock is (?:59|60)\d{3} ms ahead of the other validators/),
    ]);
    expect(await metricOf(opsOf(liarId), aheadSeconds)).toBeCloseTo(60, 0);
    for (const id of honest) {
      expect((await healthOf(opsOf(id))).status, id).toBe('Healthy');
      expect(Math.abs(await metricOf(opsOf(id), aheadSeconds)), id).toBeLessThan(1);
    }
    const from = (await dockets(early)).length;
    await seal(4 * repetitions + 1, early);
    const all = await dockets(early);
    assertInOrder(all);
    const { members } = await lookAt(api, token, early);
    const isItsOwn = (height: number) => proposerOf(members, height, 0).validatorId === liarId;
    const itsOwn = all.slice(from).filter(({ docketNumber }) => isItsOwn(docketNumber));
    expect(itsOwn.length).toBeGreaterThanOrEqual(repetitions);
    for (const { certificate } of itsOwn) expect(certificate.round).toBeGreaterThan(0);
    await until('it follows', recoveryMs, async () => {
      const { members: heard, lastDocketNumber } = await status(early);
      return heard.every((each) => each.lastDocketNumber === lastDocketNumber) ? true : undefined;
    });
    expect((await status(early)).operational).toBe(4);
  });

  test('a member whose key no signing service guards registers like any other, proposes and votes', async () => {
    await skewed?.kill();
    const wish = { title: 'A liar', policy: { leaderElection: { leaderTimeoutMs } } };
    registerId = await createRegister(api, token, wish, owner);
    await waitOnline(api, token, registerId);
    expect((await status()).members).toHaveLength(3);
    liar = await LyingMember.start(system.state, liarId);
    const proofOfPossession = liar.provePossession(registerId);
    const entry = { registerId, validatorId: liarId, publicKey: liar.key.publicKey, proofOfPossession };
    await decide('/api/validators/register', entry);
    await decide(`/api/validators/${registerId}/${liarId}/approve`, {});
    const view = await lookAt(api, token, registerId);
    expect(view.members.map(({ validatorId }) => validatorId)).toEqual([...honest, liarId]);
    liar.answer = (of, proposal) =>
      of === registerId ? liar.pen.approval(view, proposed(proposal), proposed(proposal)) : [];
    const now = await itsTurn();
    const txIds = await given(1);
    const docket = draft(now, txIds);
    await approve(honest, now, docket);
    await propose(honest, now, docket);
    await confirmed(txIds);
    const { hash, signers } = await decidedAt(now.height);
    expect([hash, signers]).toEqual([docket.header.hash, expect.arrayContaining([liarId])]);
  });

  test('two dockets for one height told to two halves, with votes for both: one of them is sealed', async () => {
    for (let n = 0; n < repetitions; n += 1) {
      const view = await itsTurn();
      const [first = '', second = ''] = await given(2);
      const [few, most] = [draft(view, [first]), draft(view, [second, first])];
      await Promise.all([propose([one], view, few), propose(others, view, most)]);
      await Promise.all([approve([one], view, few), approve(others, view, most)]);
      await confirmed([first, second]);
      const { hash, round } = await decidedAt(view.height);
      // its vote and those of two of the others are a quorum, its vote and that of one are none
      if (round === 0) expect(hash).toBe(most.header.hash);
      await caught(view.height, 'proposal');
    }
  });

  test('the validators ask to suspend it, and status says why', async () => {
    const [opened, ...more] = await until('a proposal is open', recoveryMs, async () => {
      const found = await openProposals(api, token, registerId);
      return found.length > 0 ? found : undefined;
    });
    expect([opened, more]).toMatchObject([{ operationType: 'suspend-validator', target: liarId }, []]);
    proposalId = opened?.proposalId ?? '';
    const [conviction] = await convictionsOf(api, token, registerId);
    expect(conviction?.proposalId).toBe(proposalId);
    const { register, members } = await conditionsOf(api, token, registerId);
    const equivocation = { type: 'EquivocationDetected', status: 'True' };
    expect(register).toMatchObject([{ ...equivocation, validatorIds: [liarId] }]);
    expect(members[liarId]).toMatchObject([equivocation]);
    for (const id of honest) expect(members[id], id).toEqual([]);
  });

  test('two dockets told to two halves and no vote for either: another proposer seals one', async () => {
    for (let n = 0; n < repetitions; n += 1) {
      const view = await itsTurn();
      const [first = '', second = ''] = await given(2);
      await propose([one], view, draft(view, [first]));
      await propose(others, view, draft(view, [second]));
      await confirmed([first, second]);
      expect((await decidedAt(view.height)).round).toBeGreaterThan(0);
      await caught(view.height, 'proposal');
    }
  });

  test('a proposer that is ten minutes ahead is refused, and another one seals', async () => {
    for (const laterMs of full ? [600_000, -600_000, 10_000] : [600_000]) {
      const view = await itsTurn();
      const txIds = await given(1);
      const untimely = draft(view, txIds, laterMs);
      await propose(honest, view, untimely);
      await approve(honest, view, untimely);
      await confirmed(txIds);
      const { hash, round } = await decidedAt(view.height);
      expect(hash).not.toBe(untimely.header.hash);
      expect(round).toBeGreaterThan(0);
    }
    assertInOrder(await dockets());
  });

  test('messages of earlier rounds, other registers or other members have no effect', async () => {
    await seal(1, early);
    const view = await itsTurn();
    const before = await counted(equivocations);
    const charged = await counted(faults, 'reason="signature"');
    const txIds = await given(1);
    const votes = liar.heard.flatMap(({ registerId: of, message }) =>
      message.case === 'vote' ? [{ of, vote: message.value }] : [],
    );
    const here = votes.filter(({ of }) => of === registerId).slice(-6);
    const elsewhere = votes.filter(({ of }) => of === early).slice(-3);
    expect([here.length, elsewhere.length]).toEqual([6, 3]);
    const placed = (vote: (typeof votes)[number]['vote'], round: number): Said => ({
      case: 'vote',
      value: { ...vote, height: BigInt(view.height), round },
    });
    const { pen } = liar;
    const own = pen.vote(view, 'prevote', undefined, { round: 0 });
    const moved = (change: object): Said[] =>
      own.case === 'vote' ? [{ case: 'vote', value: { ...own.value, ...change } }] : [];
    await liar.say(
      honest,
      registerId,
      ...here.map(({ vote }): Said => ({ case: 'vote', value: vote })),
      ...here.slice(0, 2).flatMap(({ vote }) => [placed(vote, 0), placed(vote, 1)]),
      ...elsewhere.map(({ vote }) => placed(vote, 0)),
      pen.vote({ ...view, registerId: early }, 'prevote', madeUp(1), { round: 0 }),
      ...Array.from({ length: 5 }, () => own),
      ...moved({ round: 1 }),
      ...moved({ validatorId: one }),
    );
    await liar.say(honest, early, ...elsewhere.map(({ vote }): Said => ({ case: 'vote', value: vote })));
    await until('each honest member has charged it', recoveryMs, async () =>
      (await counted(faults, 'reason="signature"')).every((now, index) => now >= (charged[index] ?? 0) + 10)
        ? true
        : undefined,
    );
    await propose(honest, view, draft(view, txIds));
    await confirmed(txIds);
    await decidedAt(view.height);
    expect(await counted(equivocations)).toEqual(before);
  });

  test('two votes for one place are evidence, whatever they are for', async () => {
    const view = await itsTurn();
    const txIds = await given(1);
    const docket = draft(view, txIds);
    for (const step of ['prevote', 'precommit'] as const) {
      const values = [docket.header, undefined, madeUp(3)];
      const votes = values.map((value) => liar.pen.vote(view, step, value, { round: 0 }));
      await liar.say(honest, registerId, ...votes);
    }
    await propose(honest, view, docket);
    await confirmed(txIds);
    await decidedAt(view.height);
    for (const step of ['prevote', 'precommit'] as const) await caught(view.height, step);
  });

  test('one that votes for everything and for something else at every height stops nothing', async () => {
    const view = await lookAt(api, token, registerId);
    const { pen } = liar;
    liar.answer = (of, proposal) => {
      if (of !== registerId) return [];
      const value = proposed(proposal);
      const lies = [value, madeUp(4)];
      return (['prevote', 'precommit'] as const).flatMap((step) =>
        lies.map((lie) => pen.vote(view, step, lie, value)),
      );
    };
    // who says more than fifty faulty things in ten seconds is not listened to, and could not be asked either
    for (let n = 0; n < Math.min(repetitions, 3); n += 1) {
      const now = await itsTurn();
      const txIds = await given(3);
      const docket = draft(now, txIds);
      await propose(honest, now, docket);
      await approve(honest, now, docket);
      await liar.say(honest, registerId, ...pen.approval(now, madeUp(5), { round: 0 }));
      await confirmed(txIds);
      await decidedAt(now.height);
    }
    const sealed = (await dockets()).flatMap(({ transactionIds }) => transactionIds);
    expect(new Set(sealed).size).toBe(sealed.length);
  });

  test('every honest member holds one docket a height; it is voted out, and what it says counts no more', async () => {
    const all = await dockets();
    await inParallel(all, 4, ({ docketNumber }) => decidedAt(docketNumber));
    const vote = `/api/registers/${registerId}/governance/proposals/${proposalId}/approvals`;
    await decide(vote, { decision: 'approve' });
    await seal(4);
    const now = await status();
    expect(now).toMatchObject({ status: 'Running', quorum: 3 });
    expect(now.members.map(({ validatorId }) => validatorId)).toEqual(honest);
    const later = (await dockets()).slice(-3);
    const signers = later.flatMap(({ certificate }) => certificate.signatures);
    expect(signers.map(({ validatorId }) => validatorId)).not.toContain(liarId);
  });

  test('time goes forward in both registers, and both histories verify', async () => {
    for (const each of [early, registerId]) {
      const evidence = await collectEvidence(api, token, each);
      assertInOrder([...evidence.dockets]);
      checkEvidence(evidence);
    }
  });
});

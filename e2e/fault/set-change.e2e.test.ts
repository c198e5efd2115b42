import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { quorum, type ValidatorMember, validatorSetHash } from '#core/ledger/consensus.ts';
import { activeMembers } from '#core/ledger/governance/rules.ts';
import { type Answer, type Api, createApi } from '../harness/api.ts';
import { checkEvidence, collectEvidence, fetchDockets, replayRules } from '../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  type Wallet,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { setStatus, validationStatus } from '../harness/validation.ts';
import { inParallel, until } from '../harness/wait.ts';
import { ejectTheUnapproved, type OpenRegister, openRegister, type TransitionMode } from './ejection.ts';
import { rotateKey } from './rotation.ts';
import { SteadyLoad } from './steady-load.ts';

const five = ['validator-0', 'validator-1', 'validator-2', 'validator-3', 'validator-4'];
/** The gateway talks to this one, whether it is a member or not. */
const first = 'validator-0';
const joiner = 'validator-4';
const recoveryMs = 60_000;
/** The grace takes ten seconds. */
const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const transitions: readonly TransitionMode[] = full ? ['immediate', 'grace-period'] : ['immediate'];
/** leaderTimeoutMs of the default policy and two seconds, and what a busy machine may add. */
const longestPauseMs = 3_000 + 2_000 + 5_000;

const submitted = z.object({ txId: z.string(), status: z.string() });
const placed = z.object({ status: z.literal('confirmed'), docketNumber: z.number() });
const listed = z.object({
  validators: z.array(
    z.object({
      validatorId: z.string(),
      publicKey: z.string(),
      algorithm: z.string(),
      status: z.string(),
      effectiveFromDocket: z.number(),
    }),
  ),
});
const approved = z.object({ quorum: z.number(), validators: z.array(z.object({ validatorId: z.string() })) });

/** From this docket on these are the members. */
interface Term {
  readonly from: number;
  readonly members: readonly string[];
}

const codeOf = ({ status, body }: Answer) => [status, (body as { code?: string }).code];
const without = (members: readonly string[], ...gone: readonly string[]) =>
  members.filter((id) => !gone.includes(id));

describe('the set of validators changes under load', () => {
  let dataDir = '';
  let system: LocalSystem;
  let api: Api;
  let token = '';
  let owner: Wallet;
  let registerId = '';
  let load: SteadyLoad;
  const open = new Map<TransitionMode, OpenRegister>();
  const terms: Term[] = [{ from: 0, members: without(five, joiner) }];

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-set-'));
    system = await startSystem({ dataDir, args: ['--processes', '--validators', '5'], deadlineMs: 120_000 });
    api = createApi(system.state.gatewayUrl);
    token = (await signIn(api, system.state)).access_token;
    owner = await createWallet(api, token, 'ED25519');
    // A validator that cannot be reached when a register begins is no member of it.
    system.killOne(joiner);
    await until('it has ended', recoveryMs, async () =>
      system.current().processes.some(({ name }) => name === joiner) ? undefined : true,
    );
    registerId = await createRegister(api, token, 'A set that changes', owner);
    await waitOnline(api, token, registerId);
    for (const mode of transitions) open.set(mode, await openRegister(api, token, owner));
    await system.again(joiner);
    load = new SteadyLoad({ api, token, registerId, workers: 2, pauseMs: 50 });
  });
  afterAll(async () => {
    await load?.stop();
    await system?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const base = () => `/api/registers/${registerId}`;
  const dockets = () => fetchDockets(api, token, base());
  const status = () => setStatus(api, token, registerId);
  const act = (validatorId: string, name: 'approve' | 'reject' | 'suspend') =>
    api.send('POST', `/api/validators/${registerId}/${validatorId}/${name}`, { token, json: {} });
  const register = (validatorId: string) =>
    api.send('POST', '/api/validators/register', { token, json: { registerId, validatorId } });
  const admin = (name: 'pause' | 'resume') =>
    api.expect(200, 'POST', `/api/admin/validation/${name}/${registerId}`, { token });
  const validators = async () =>
    listed.parse((await api.expect(200, 'GET', `/api/validators/${registerId}`, { token })).body).validators;

  /** The docket that a change was sealed in. */
  async function sealedIn(answer: Answer): Promise<number> {
    expect([answer.status, answer.body]).toMatchObject([202, {}]);
    const { txId } = submitted.parse(answer.body);
    await waitConfirmed(api, token, registerId, txId);
    const found = await api.expect(200, 'GET', `${base()}/transactions/${txId}`, { token });
    return placed.parse(found.body).docketNumber;
  }

  /** Waits until everybody works with the new members, and remembers from where on they are in force. */
  async function takesEffect(sealed: number, members: readonly string[]): Promise<void> {
    terms.push({ from: sealed + 1, members });
    await until(`${members.join()} decide`, recoveryMs, async () => {
      const now = await status();
      return now.lastDocketNumber > sealed + 1 && now.members.length === members.length ? true : undefined;
    });
    const now = await status();
    expect(now.members.map(({ validatorId }) => validatorId)).toEqual(members);
    expect([now.status, now.quorum]).toEqual(['Running', quorum(members.length, 1)]);
    const { body } = await api.expect(200, 'GET', `${base()}/validators/approved`, { token });
    expect(approved.parse(body).quorum).toBe(quorum(members.length, 1));
  }

  const signs = (validatorId: string) =>
    until(`${validatorId} signs`, recoveryMs, async () => {
      const latest = await api.expect(200, 'GET', `${base()}/dockets/latest`, { token });
      const { certificate } = latest.body as { certificate: { signatures: { validatorId: string }[] } };
      return certificate.signatures.some((one) => one.validatorId === validatorId) ? true : undefined;
    });

  test('four begin; the fifth is known to the installation and votes nowhere', async () => {
    const { members, quorum: needed } = await status();
    expect([members.map(({ validatorId }) => validatorId), needed]).toEqual([without(five, joiner), 3]);
    const { validators: all } = await validationStatus(api, token);
    expect(all.map(({ validatorId }) => validatorId)).toEqual(five);
    expect(codeOf(await act(joiner, 'approve'))).toEqual([404, 'VALIDATOR_NOT_FOUND']);
  });

  test('it registers with its proof of possession, waits, is approved, counts from the next docket and signs', async () => {
    // The register service asks it for the proof, and may still be waiting to connect to it again.
    const answer = await until('it can be asked', recoveryMs, async () => {
      const given = await register(joiner);
      return given.status === 503 ? undefined : given;
    });
    expect(answer.body).toMatchObject({ status: 'pending' });
    await sealedIn(answer);
    expect((await validators()).find(({ validatorId }) => validatorId === joiner)?.status).toBe('pending');
    expect((await status()).members).toHaveLength(4);
    await takesEffect(await sealedIn(await act(joiner, 'approve')), five);
    await signs(joiner);
  });

  test('the validator that the gateway uses is removed: it forwards submissions, and its votes no longer count', async () => {
    await takesEffect(await sealedIn(await act(first, 'reject')), without(five, first));
    await waitConfirmed(
      api,
      token,
      registerId,
      await submitThroughRegister(api, token, {
        registerId,
        sender: owner.walletAddress,
        payload: { without: first },
      }),
    );
    expect(codeOf(await register(first))).toEqual([422, 'VAL_PERM_017']);
    expect(codeOf(await act(first, 'reject'))).toEqual([422, 'VAL_PERM_017']);
    const { validators: all } = await validationStatus(api, token);
    expect(all).toContainEqual(expect.objectContaining({ validatorId: first, reachable: true }));
    const accepted = [...load.accepted];
    await inParallel(accepted, 8, (txId) => waitConfirmed(api, token, registerId, txId));
  });

  test('it is approved again, catches up and signs', async () => {
    await takesEffect(await sealedIn(await act(first, 'approve')), five);
    await signs(first);
  });

  test('two changes that wait together are sealed in two dockets, and one more than may go is refused', async () => {
    await admin('pause');
    const answers = [await act('validator-2', 'reject'), await act('validator-3', 'suspend')];
    await admin('resume');
    const sealed = await inParallel(answers, 2, sealedIn);
    const [one = 0, other = 0] = sealed;
    expect(one).not.toBe(other);
    const [early, late] = one < other ? ['validator-2', 'validator-3'] : ['validator-3', 'validator-2'];
    terms.push({ from: Math.min(one, other) + 1, members: without(five, early) });
    await takesEffect(Math.max(one, other), without(five, early, late));
    expect(codeOf(await act('validator-1', 'suspend'))).toEqual([422, 'VAL_PERM_011']);
    const now = await validators();
    const statusOf = (id: string) => now.find(({ validatorId }) => validatorId === id)?.status;
    expect(['validator-2', 'validator-3'].map(statusOf)).toEqual(['removed', 'suspended']);
  });

  test('one that is out starts again and stays out', async () => {
    system.killOne('validator-2');
    await until('it has ended', recoveryMs, async () =>
      system.current().processes.some(({ name }) => name === 'validator-2') ? undefined : true,
    );
    await system.again('validator-2');
    const { lastDocketNumber } = await status();
    const now = await until('the others go on', recoveryMs, async () => {
      const later = await status();
      return later.lastDocketNumber > lastDocketNumber + 2 ? later : undefined;
    });
    expect(now.members.map(({ validatorId }) => validatorId)).toEqual(terms.at(-1)?.members);
    expect(now.status).toBe('Running');
  });

  test('every docket names the set of its height and is certified by its quorum; nothing is lost; history verifies', async () => {
    await load.stop();
    expect(load.unexpected).toEqual([]);
    await inParallel([...load.accepted], 8, (txId) => waitConfirmed(api, token, registerId, txId));
    const all = await dockets();
    const sealed = all.flatMap(({ transactionIds }) => transactionIds);
    expect(new Set(sealed).size).toBe(sealed.length);
    expect([...load.accepted].filter((txId) => !sealed.includes(txId))).toEqual([]);
    expect(all.map(({ docketNumber }) => docketNumber)).toEqual(all.map((_, number) => number));
    const keys = (await validators()).flatMap(({ validatorId, publicKey, algorithm }): ValidatorMember[] =>
      isAlgorithm(algorithm) ? [{ validatorId, publicKey, algorithm }] : [],
    );
    for (const { docketNumber, validatorSetHash: hash, certificate, consensusVotes } of all) {
      const members = terms.findLast(({ from }) => from <= docketNumber)?.members ?? [];
      const own = keys.filter(({ validatorId }) => members.includes(validatorId));
      expect(hash, `docket ${docketNumber}`).toBe(validatorSetHash(own));
      const voters = [...certificate.signatures, ...consensusVotes].map(({ validatorId }) => validatorId);
      expect(without(voters, ...members), `docket ${docketNumber}`).toEqual([]);
      expect(certificate.signatures.length).toBeGreaterThanOrEqual(quorum(members.length, 1));
    }
    const sealedAtMs = all.map(({ timestamp }) => Date.parse(timestamp));
    for (const { from } of terms.slice(1)) {
      const pauseMs = (sealedAtMs[from] ?? 0) - (sealedAtMs[from - 1] ?? 0);
      expect(pauseMs, `before docket ${from}`).toBeLessThan(longestPauseMs);
    }
    const evidence = await collectEvidence(api, token, registerId);
    checkEvidence(evidence);
    const last = terms.at(-1)?.members;
    expect(activeMembers(replayRules(evidence)).map(({ validatorId }) => validatorId)).toEqual(last);
  });

  test.each(transitions)(
    '%s: who joined an open register without approval leaves it when it is closed',
    async (mode) => {
      const register = open.get(mode);
      if (register === undefined) throw new Error('there is no such register');
      await ejectTheUnapproved(register, joiner, mode);
    },
  );

  test('keys are rotated: the old one counts up to the docket that says so, the new one from the next', async () => {
    const register = open.get('immediate');
    if (register === undefined) throw new Error('there is no such register');
    await rotateKey(register, 'validator-1');
    // A member that starts again knows by which key the register names it.
    system.killOne('validator-1');
    await until('it has ended', recoveryMs, async () =>
      system.current().processes.some(({ name }) => name === 'validator-1') ? undefined : true,
    );
    await system.again('validator-1');
    await rotateKey(register, 'validator-1');
  });
});

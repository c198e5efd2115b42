import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Answer } from '../harness/api.ts';
import { checkEvidence, collectEvidence, replayRules } from '../harness/evidence.ts';
import {
  createOrganization,
  createPerson,
  type Governed,
  governed,
  type Person,
} from '../harness/governance.ts';
import { createRegister, submitThroughRegister, waitConfirmed, waitOnline } from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';
import { setStatus } from '../harness/validation.ts';
import { inParallel, until } from '../harness/wait.ts';

const here = installation(['--validators', '4']);
/** Validator ids are names of processes or of pods. */
const member = (number: number): string => here.state.validators[number]?.validatorId ?? '';
const submitted = z.object({ txId: z.string(), status: z.literal('submitted') });
const placed = z.object({ status: z.literal('confirmed'), docketNumber: z.number() });
const docket = z.object({
  docketNumber: z.number(),
  validatorSetHash: z.string(),
  certificate: z.object({ signatures: z.array(z.object({ validatorId: z.string() })) }),
});
const versions = z.object({
  items: z.array(
    z.object({
      version: z.number(),
      docketNumber: z.number(),
      effectiveFromDocket: z.number(),
      txId: z.string(),
      updatedBy: z.string().nullable(),
    }),
  ),
  totalCount: z.number(),
  hasMore: z.boolean(),
});
const validators = z.object({
  count: z.number(),
  quorum: z.number().optional(),
  validators: z.array(z.looseObject({ validatorId: z.string(), did: z.string(), status: z.string() })),
});

const codeOf = ({ status, body }: Answer) => [status, (body as { code?: string }).code];

describe('policies and validators of a register', () => {
  let owner: Person;
  let second: Person;
  let stranger: Person;
  let register: Governed;
  let base = '';

  const get = (path: string, { token }: Person = owner) => here.api.send('GET', `${base}${path}`, { token });
  const post = (path: string, json: object, { token }: Person = owner) =>
    here.api.send('POST', `${base}${path}`, { token, json });
  const update = (policy: object, more: object = {}, who: Person = owner) =>
    post('/policy/update', { policy, updatedBy: who.did, ...more }, who);
  const setAct = (validatorId: string, act: string, json: object = {}) =>
    here.api.send('POST', `/api/validators/${register.registerId}/${validatorId}/${act}`, {
      token: owner.token,
      json,
    });
  /** The number of the docket that sealed a change. */
  const sealedIn = async (answer: Answer): Promise<number> => {
    const { txId } = submitted.parse(answer.body);
    await waitConfirmed(here.api, owner.token, register.registerId, txId);
    return placed.parse((await get(`/transactions/${txId}`)).body).docketNumber;
  };
  const send = async (payload: object): Promise<string> =>
    submitThroughRegister(here.api, owner.token, {
      registerId: register.registerId,
      sender: owner.wallet.walletAddress,
      payload,
    });
  /** The docket that sealed an Action. */
  const sealAction = async (payload: object): Promise<number> => {
    const txId = await send(payload);
    await waitConfirmed(here.api, owner.token, register.registerId, txId);
    return placed.parse((await get(`/transactions/${txId}`)).body).docketNumber;
  };
  const docketOf = async (number: number) => docket.parse((await get(`/dockets/${number}`)).body);

  beforeAll(async () => {
    const root = here.token();
    const organization = await createOrganization(here.api, root, 'policy');
    const other = await createOrganization(here.api, root, 'outside');
    owner = await createPerson(here.api, root, organization, { name: 'owner', role: 'Administrator' });
    second = await createPerson(here.api, root, organization, { name: 'second', role: 'Administrator' });
    stranger = await createPerson(here.api, root, other, { name: 'stranger', role: 'Administrator' });
    const policy = { validators: { registrationMode: 'public' } };
    const spec = { title: 'Of policies', devMode: true, policy };
    const registerId = await createRegister(here.api, owner.token, spec, owner.wallet);
    await waitOnline(here.api, owner.token, registerId);
    register = governed(here.api, registerId);
    base = `/api/registers/${registerId}`;
  });

  test('the policy of a new register is the default one', async () => {
    const { status, body } = await get('/policy');
    expect([status, body]).toMatchObject([
      200,
      {
        registerId: register.registerId,
        isDefault: true,
        policy: { version: 1, governance: { proposalTtlDays: 7 } },
      },
    ]);
    expect((await get('/policy', stranger)).status).toBe(404);
  });

  test('an update takes effect with the next docket, on every validator', async () => {
    const answer = await update({ version: 2, consensus: { signatureThresholdMin: 4 } });
    expect([answer.status, answer.body]).toMatchObject([
      202,
      { registerId: register.registerId, newVersion: 2, status: 'submitted', requiresGovernanceVote: false },
    ]);
    const number = await sealedIn(answer);
    await sealAction({ after: 'the update' });
    expect((await docketOf(number)).certificate.signatures.length).toBeGreaterThanOrEqual(3);
    expect((await docketOf(number + 1)).certificate.signatures).toHaveLength(4);
    const set = await setStatus(here.api, here.token(), register.registerId);
    expect([set.quorum, set.members.length]).toEqual([4, 4]);
    const { body } = await get('/policy');
    expect(body).toMatchObject({ isDefault: false, policy: { version: 2, updatedBy: owner.did } });
    await sealedIn(await update({ consensus: { signatureThresholdMin: 1 } }));
  });

  test('a version is accepted once; malformed and unauthorised updates are refused', async () => {
    const conflict = await update({ version: 3 });
    expect(codeOf(conflict)).toEqual([409, 'POLICY_VERSION_CONFLICT']);
    expect(conflict.body).toMatchObject({ currentVersion: 3 });
    expect(codeOf(await update({ version: 5 }))).toEqual([409, 'POLICY_VERSION_CONFLICT']);
    expect(codeOf(await update({ consensus: { docketTimeoutSeconds: 1 } }))).toEqual([400, 'INVALID_POLICY']);
    expect(codeOf(await update({ leaderElection: { mechanism: 'raft' } }))).toEqual([
      422,
      'MECHANISM_NOT_SUPPORTED',
    ]);
    expect(codeOf(await update({ validators: { minValidators: 5 } }))).toEqual([422, 'VAL_POLICY_006']);
    for (const consensus of [{ precisionMs: 1 }, { messageDelayMs: 1 }, { maxTransactionBytes: 512 }]) {
      expect(codeOf(await update({ consensus })), JSON.stringify(consensus)).toEqual([422, 'VAL_POLICY_005']);
    }
    expect((await post('/policy/update', { policy: {}, updatedBy: owner.did }, second)).status).toBe(403);
    expect((await update({}, {}, stranger)).status).toBe(403);
    const racers = [1, 2, 3].map((n) => ({ version: 4, governance: { proposalTtlDays: 10 + n } }));
    const answers = await inParallel(racers, 3, (policy) => update(policy));
    const won = answers.filter(({ status }) => status === 202);
    expect(won.length).toBeGreaterThanOrEqual(1);
    await until('version 4', 20_000, async () => {
      const { body } = await get('/policy');
      return (body as { policy: { version: number } }).policy.version === 4 ? true : undefined;
    });
  });

  test('text that a database column cannot hold is sealed and stored like any other', async () => {
    const strange = { later: { 'n\u0000': 'a\u0000b', list: ['\u0000'] } };
    await sealedIn(await update(strange));
    await sealAction({ after: 'strange text' });
    expect((await get('/policy')).body).toMatchObject({ policy: strange });
    for (const path of ['/policy/history', '/governance/history', '/governance/proposals']) {
      expect((await get(path)).status, path).toBe(200);
    }
  });

  test('a justification with invisible or bidirectional characters is refused', async () => {
    const add = { operationType: 'add-member', targetDid: second.did, targetRole: 'Designer' };
    for (const justification of ['because\u0000', 'because\u202e', 'because\u2028']) {
      const refused = await post('/governance/propose', { ...add, justification });
      expect(codeOf(refused)).toEqual([400, 'INVALID_REQUEST']);
    }
    const justification = 'because \n "\\" €';
    expect(await register.decide(owner, { ...add, justification })).toBeUndefined();
    await sealAction({ after: 'a justification' });
  });

  test('a change from public to consent requires a transition mode', async () => {
    const closed = { validators: { registrationMode: 'consent' } };
    expect(codeOf(await update(closed))).toEqual([400, 'TRANSITION_MODE_REQUIRED']);
    const number = await sealedIn(await update(closed, { transitionMode: 'Immediate' }));
    await sealAction({ closed: true });
    expect((await docketOf(number + 1)).certificate.signatures.length).toBeGreaterThanOrEqual(3);
    const { body } = await get('/validators/approved');
    expect(body).toMatchObject({ registrationMode: 'consent', count: 4 });
  });

  test('the history has each version once, newest first, page by page', async () => {
    const seen: z.output<typeof versions>['items'] = [];
    for (let page = 1; ; page += 1) {
      const { items, totalCount, hasMore } = versions.parse(
        (await get(`/policy/history?page=${page}&pageSize=2`)).body,
      );
      expect(totalCount).toBe(6);
      seen.push(...items);
      if (!hasMore) break;
    }
    expect(seen.map(({ version }) => version)).toEqual([6, 5, 4, 3, 2, 1]);
    expect(seen.at(-1)).toMatchObject({ docketNumber: 0, effectiveFromDocket: 0, updatedBy: null });
    expect(seen.every(({ docketNumber: at, effectiveFromDocket: from }) => at === 0 || from === at + 1)).toBe(
      true,
    );
    for (const query of ['page=0', 'pageSize=101', 'pageSize=-1']) {
      expect((await get(`/policy/history?${query}`)).status, query).toBe(400);
    }
  });

  test('development mode is switched off once, and cannot be switched on again', async () => {
    const off = await post('/disable-dev-mode', {});
    expect([off.status, off.body]).toMatchObject([
      200,
      { registerId: register.registerId, policyVersion: 2, status: 'submitted' },
    ]);
    await sealedIn(off);
    expect((await get('')).body).toMatchObject({ devMode: false });
    expect(codeOf(await post('/disable-dev-mode', {}))).toEqual([409, 'DEV_MODE_ALREADY_DISABLED']);
    const on = { cryptoPolicy: { devMode: true }, updatedBy: owner.did };
    expect(codeOf(await post('/governance/crypto-policy', on))).toEqual([422, 'VAL_POLICY_003']);
    const { body } = await get('/crypto-policy');
    const { cryptoPolicy } = body as { cryptoPolicy: { version: number } };
    const next = { ...cryptoPolicy, version: cryptoPolicy.version + 1, devMode: true };
    const alone = { version: 2, registerId: register.registerId, cryptoPolicy: next };
    const direct = await register.send(owner, 'control.crypto.update', alone);
    expect(codeOf(direct)).toEqual([422, 'VAL_POLICY_003']);
    expect((await get('')).body).toMatchObject({ devMode: false });
  });

  test('an algorithm that the crypto policy no longer accepts is refused for every signer', async () => {
    const narrow = { cryptoPolicy: { acceptedSignatureAlgorithms: ['ED25519'] }, updatedBy: owner.did };
    await sealedIn(await post('/governance/crypto-policy', narrow));
    const rsa = await createPerson(
      here.api,
      here.token(),
      await createOrganization(here.api, here.token(), 'rsa'),
      { name: 'rsa', role: 'User', keyType: 'RSA' },
    );
    const added = { operationType: 'add-member', targetDid: rsa.did, targetRole: 'Auditor' };
    expect(await register.decide(owner, added)).toBeUndefined();
    const shut = { cryptoPolicy: { acceptedSignatureAlgorithms: ['NISTP256'] }, updatedBy: owner.did };
    expect(codeOf(await post('/governance/crypto-policy', shut))).toEqual([422, 'VAL_POLICY_007']);
    const history = versions.parse((await get('/crypto-policy/history')).body);
    expect(history.items.map(({ version }) => version)).toEqual([3, 2, 1]);
  });

  test.each(['suspend', 'reject'])(
    'a validator leaves the set by %s and returns, and nothing that was accepted is lost',
    async (leave) => {
      const before = (await docketOf(await sealAction({ before: leave }))).validatorSetHash;
      const gone = await sealedIn(await setAct(member(3), leave, { reason: 'maintenance' }));
      const actions = Array.from({ length: 24 }, (_, n) => ({ [leave]: n }));
      const txIds = await inParallel(actions, 6, send);
      for (const txId of txIds) await waitConfirmed(here.api, owner.token, register.registerId, txId);
      const [last, next] = [await docketOf(gone), await docketOf(gone + 1)];
      expect(last.validatorSetHash).toBe(before);
      expect(next.validatorSetHash).not.toBe(before);
      expect(next.certificate.signatures.map(({ validatorId }) => validatorId)).not.toContain(member(3));
      expect(codeOf(await setAct(member(2), 'suspend'))).toEqual([422, 'VAL_PERM_011']);
      const approved = validators.parse((await get('/validators/approved')).body);
      expect(approved.quorum).toBe(3);
      const back = await sealedIn(await setAct(member(3), 'approve', { approvalNotes: 'back' }));
      await sealAction({ back: leave });
      expect((await docketOf(back)).validatorSetHash).toBe(next.validatorSetHash);
      expect((await docketOf(back + 1)).validatorSetHash).toBe(before);
      await until('the validator signs again', 20_000, async () => {
        const { certificate } = await docketOf(await sealAction({ n: 'again', at: performance.now() }));
        return certificate.signatures.some(({ validatorId }) => validatorId === member(3)) ? true : undefined;
      });
    },
  );

  test('the chain verifies offline, each docket by the validators of its height', async () => {
    const evidence = await collectEvidence(here.api, owner.token, register.registerId);
    expect(checkEvidence(evidence)).toMatch(/^[0-9a-f]{64}$/);
    const { policy, cryptoPolicy, roster } = replayRules(evidence);
    expect((await get('/policy')).body).toMatchObject({ policy });
    expect((await get('/crypto-policy')).body).toMatchObject({ cryptoPolicy });
    const roles = Object.fromEntries(roster.map(({ subject, role }) => [subject, role]));
    expect(await register.roles(owner)).toEqual(roles);
    expect(new Set(evidence.dockets.map(({ validatorSetHash }) => validatorSetHash)).size).toBe(2);
  });

  test('the validators, the pending ones and those that are alive are listed', async () => {
    const operational = validators.parse((await get('/validators/operational')).body);
    expect(operational.validators.map(({ status }) => status)).toEqual([
      'active',
      'active',
      'active',
      'active',
    ]);
    const all = await here.api.expect(200, 'GET', `/api/validators/${register.registerId}`, {
      token: owner.token,
    });
    expect(validators.parse(all.body).count).toBe(4);
    const pending = await here.api.expect(200, 'GET', `/api/validators/${register.registerId}/pending`, {
      token: owner.token,
    });
    expect(validators.parse(pending.body).validators).toEqual([]);
    expect(codeOf(await setAct('validator-9', 'approve'))).toEqual([404, 'VALIDATOR_NOT_FOUND']);
    expect(codeOf(await setAct(member(0), 'approve'))).toEqual([422, 'VAL_PERM_017']);
    const json = { registerId: register.registerId, validatorId: member(0) };
    const again = await here.api.send('POST', '/api/validators/register', { token: owner.token, json });
    expect(codeOf(again)).toEqual([422, 'VAL_PERM_017']);
    const foreign = await here.api.send('POST', '/api/validators/register', { token: stranger.token, json });
    expect(foreign.status).toBe(403);
  });
});

import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { approvalDigest, type Operation } from '#core/ledger/governance/operation.ts';
import { checkEvidence, collectEvidence } from '../harness/evidence.ts';
import {
  approvalOf,
  createOrganization,
  createPerson,
  type Governed,
  governed,
  type Person,
  signWithWallet,
} from '../harness/governance.ts';
import { createRegister, submitThroughRegister, waitConfirmed, waitOnline } from '../harness/journey.ts';
import { createOutsideKey } from '../harness/outside.ts';
import { installation } from '../harness/shared-system.ts';

const here = installation();
const forged = Buffer.alloc(64, 7).toString('base64');
const now = (): string => formatLedgerTimestamp(BigInt(Date.now()) * 1000n);
const codeOf = ({ status, body }: { status: number; body: unknown }) => [
  status,
  (body as { code?: string }).code,
];
const historyPage = z.object({
  items: z.array(z.looseObject({ txId: z.string(), docketNumber: z.number(), operationType: z.string() })),
  totalCount: z.number(),
  totalPages: z.number(),
  hasMore: z.boolean(),
});

describe('a register that governs itself', () => {
  let register: Governed;
  let owner: Person;
  let second: Person;
  let third: Person;
  let fourth: Person;
  let stranger: Person;

  const addOf = (who: Person, targetRole: string) => ({
    operationType: 'add-member',
    targetDid: who.did,
    targetRole,
  });
  const removeOf = (who: Person) => ({ operationType: 'remove-member', targetDid: who.did });
  const refusedWith = async (who: Person, request: object) => codeOf(await register.propose(who, request));
  const opened = async (who: Person, request: object): Promise<string> => {
    const id = await register.decide(who, { ...request, mode: 'proposal' });
    if (id === undefined) throw new Error('no proposal was opened');
    return id;
  };
  const approve = async (id: string, ...approvers: readonly Person[]) => {
    for (const who of approvers) await register.cast(who, id, { decision: 'approve' });
    await register.waitStatus(owner, id, 'Recorded');
  };
  /** Approvals of one operation that people sign before any part of it is on the chain. */
  const presigned = async (operation: Operation, ...approvers: readonly Person[]) => {
    const { rosterHash } = await register.roster(owner);
    return Promise.all(
      approvers.map(async (approver) => {
        const { registerId } = register;
        const facts = { registerId, approverDid: approver.did, isApproval: true, operation };
        const digest = approvalDigest({ ...facts, rosterHashBefore: rosterHash });
        const signature = await signWithWallet(here.api, approver, digest);
        return { approverDid: approver.did, isApproval: true, signature };
      }),
    );
  };
  const removal = (proposer: Person, target: Person): Operation => ({
    operationType: 'remove-member',
    proposerDid: proposer.did,
    proposedAt: now(),
    targetDid: target.did,
  });

  beforeAll(async () => {
    const root = here.token();
    const organization = await createOrganization(here.api, root, 'assembly');
    const other = await createOrganization(here.api, root, 'elsewhere');
    const create = (name: string, role: 'Administrator' | 'User', keyType = 'ED25519') =>
      createPerson(here.api, root, organization, { name, role, keyType });
    owner = await create('owner', 'Administrator');
    second = await create('second', 'User', 'NISTP256');
    third = await create('third', 'User', 'RSA');
    fourth = await create('fourth', 'User');
    stranger = await createPerson(here.api, root, other, { name: 'stranger', role: 'Administrator' });
    const registerId = await createRegister(here.api, owner.token, 'Assembly', owner.wallet);
    await waitOnline(here.api, owner.token, registerId);
    register = governed(here.api, registerId);
  });

  test('the owner alone adds an admin, and from then on two must agree', async () => {
    expect((await register.roster(owner)).quorum).toMatchObject({
      voters: 1,
      required: 1,
      ownerCanBypass: true,
    });
    expect(await register.decide(owner, addOf(second, 'Admin'))).toBeUndefined();
    expect(await register.roles(second)).toEqual({ [owner.did]: 'Owner', [second.did]: 'Admin' });
    const { quorum, controlTransactionCount } = await register.roster(second);
    expect(quorum).toMatchObject({ voters: 2, required: 2, ownerCanBypass: false });
    expect(controlTransactionCount).toBe(1);
    expect(await refusedWith(owner, { ...addOf(third, 'Admin'), mode: 'direct' })).toEqual([
      403,
      'VAL_PERM_008',
    ]);
  });

  test('a vote counts when another member submits it', async () => {
    const id = await opened(owner, addOf(third, 'Admin'));
    const shown = await register.ballot(third, id);
    expect(shown).toMatchObject({ status: 'Pending', votesReceived: 1, votesRequired: 2 });
    await register.cast(owner, id, { approvals: [await approvalOf(here.api, second, shown)] });
    await register.waitStatus(owner, id, 'Recorded');
    expect(await register.roles(owner)).toMatchObject({ [third.did]: 'Admin' });
    expect(codeOf(await register.vote(third, id, { decision: 'approve' }))).toEqual([409, 'PROPOSAL_CLOSED']);
  });

  test('an admin alone removes no member, a quorum does, in one transaction', async () => {
    expect(await refusedWith(second, { ...removeOf(third), mode: 'direct' })).toEqual([403, 'VAL_PERM_008']);
    const operation = removal(second, third);
    const approvals = await presigned(operation, owner);
    const request = { ...removeOf(third), proposedAt: operation.proposedAt, approvals, mode: 'direct' };
    expect(await register.decide(second, request)).toBeUndefined();
    expect(await register.roles(owner)).not.toHaveProperty([third.did]);
    const again = await register.send(second, 'remove-member', {
      version: 2,
      operation: { ...operation, approvalSignatures: approvals },
      rosterHashBefore: 'ab'.repeat(32),
      rosterHashAfter: 'ab'.repeat(32),
    });
    expect(codeOf(again)).toEqual([422, 'VAL_PERM_009']);
    await approve(await opened(owner, addOf(third, 'Admin')), second);
  });

  test('a forged approval does not count, and no member counts twice', async () => {
    const operation = removal(owner, third);
    const [sound] = await presigned(operation, second);
    const [own] = await presigned(operation, owner);
    const request = { ...removeOf(third), proposedAt: operation.proposedAt, mode: 'direct' };
    const refused: readonly (readonly unknown[])[] = [
      [{ ...sound, signature: forged }],
      [{ ...sound, approverDid: fourth.did }],
      [own, own],
      [{ ...sound, isApproval: false }],
    ];
    for (const approvals of refused) {
      expect(await refusedWith(owner, { ...request, approvals })).toEqual([403, 'VAL_PERM_008']);
    }
    const later = { ...request, proposedAt: now(), approvals: [sound] };
    expect(await refusedWith(owner, later)).toEqual([403, 'VAL_PERM_008']);
    const id = await opened(owner, addOf(fourth, 'Auditor'));
    const ballot = await register.ballot(owner, id);
    const vote = await approvalOf(here.api, second, ballot);
    const brought = await register.vote(owner, id, { approvals: [{ ...vote, signature: forged }] });
    expect(codeOf(brought)).toEqual([422, 'VAL_PERM_015']);
    expect(codeOf(await register.vote(owner, id, { decision: 'approve' }))).toEqual([422, 'VAL_PERM_015']);
    expect((await register.ballot(owner, id)).votesReceived).toBe(1);
    await register.cast(second, id, { approvals: [{ ...vote, signature: forged }, vote, vote] });
    await register.waitStatus(owner, id, 'Recorded');
    expect(await register.roles(owner)).toMatchObject({ [fourth.did]: 'Auditor' });
  });

  test('ownership is transferred to an admin that accepts it, and the last owner stays', async () => {
    const transferTo = (who: Person) => ({ operationType: 'transfer-ownership', targetDid: who.did });
    expect(await refusedWith(owner, transferTo(fourth))).toEqual([422, 'VAL_PERM_006']);
    expect(await refusedWith(second, removeOf(owner))).toEqual([422, 'VAL_PERM_005']);
    expect(await refusedWith(owner, transferTo(stranger))).toEqual([422, 'VAL_PERM_004']);
    const declined = await opened(owner, transferTo(second));
    await register.cast(second, declined, { decision: 'reject', comment: 'not now' });
    await register.waitStatus(owner, declined, 'Rejected');
    const accepted = await opened(owner, transferTo(second));
    await register.cast(third, accepted, { decision: 'approve' });
    expect((await register.ballot(owner, accepted)).status).toBe('Pending');
    await approve(accepted, second);
    expect(await register.roles(owner)).toMatchObject({ [owner.did]: 'Admin', [second.did]: 'Owner' });
  });

  test('a proposal ends with the roster that it was made for', async () => {
    const stale = await opened(third, removeOf(owner));
    await approve(await opened(second, { ...removeOf(fourth) }), third);
    expect((await register.ballot(owner, stale)).rosterChanged).toBe(true);
    expect(codeOf(await register.vote(second, stale, { decision: 'approve' }))).toEqual([
      422,
      'VAL_PERM_009',
    ]);
    expect(await register.roles(owner)).toMatchObject({ [owner.did]: 'Admin' });
    await approve(await opened(second, addOf(fourth, 'Auditor')), third);
  });

  test('a person outside the roster or with a role without vote decides nothing', async () => {
    expect(await refusedWith(fourth, addOf(stranger, 'Admin'))).toEqual([403, 'VAL_PERM_003']);
    const id = await opened(second, removeOf(third));
    expect(codeOf(await register.vote(fourth, id, { decision: 'approve' }))).toEqual([403, 'VAL_PERM_003']);
    expect((await register.propose(stranger, addOf(stranger, 'Admin'))).status).toBe(403);
    expect((await register.get('/roster', stranger)).status).toBe(404);
    expect(
      (await here.api.send('GET', `/api/registers/${register.registerId}/governance/roster`)).status,
    ).toBe(401);
    const impostor: Person = { ...stranger, token: owner.token };
    expect(await refusedWith(impostor, { ...removeOf(third), proposerDid: second.did })).toEqual([
      403,
      'NOT_ON_ROSTER',
    ]);
    expect(codeOf(await register.vote(third, id, { decision: 'reject' }))).toEqual([422, 'VAL_PERM_015']);
    await register.cast(owner, id, { decision: 'reject' });
    await register.waitStatus(owner, id, 'Rejected');
  });

  test('an impossible operation is refused before anything is signed', async () => {
    const before = (await register.roster(owner)).controlTransactionCount;
    const key = createOutsideKey();
    const requests: readonly (readonly [number, object])[] = [
      [400, { operationType: 'add-member', targetDid: `did:platform:w:${key.address}`, targetRole: 'Admin' }],
      [400, { operationType: 'dissolve' }],
      [400, { operationType: 'remove-member', targetDid: 'did:web:example.org' }],
      [400, { ...addOf(stranger, 'King') }],
      [400, { ...removeOf(third), justification: 'x'.repeat(501) }],
      [422, { ...removeOf(third), proposedAt: '2020-01-01T00:00:00.0000000+00:00', mode: 'direct' }],
      [422, addOf(third, 'Admin')],
    ];
    for (const [status, request] of requests) {
      expect((await register.propose(second, request)).status, JSON.stringify(request)).toBe(status);
    }
    const withKey = { publicKey: key.publicKey, algorithm: 'ED25519' };
    const foreign = { ...addOf(stranger, 'Admin'), targetKey: withKey };
    expect((await register.propose(second, foreign)).status).toBeGreaterThanOrEqual(400);
    expect((await register.roster(owner)).controlTransactionCount).toBe(before);
  });

  test('the history lists everything once, newest first, page by page', async () => {
    const { controlTransactionCount } = await register.roster(owner);
    const seen: { txId: string; docketNumber: number }[] = [];
    for (let page = 1; ; page += 1) {
      const answer = await register.get(`/history?page=${page}&pageSize=4`, owner);
      const { items, hasMore, totalCount, totalPages } = historyPage.parse(answer.body);
      expect([totalCount, totalPages]).toEqual([
        controlTransactionCount + 1,
        Math.ceil((controlTransactionCount + 1) / 4),
      ]);
      seen.push(...items);
      if (!hasMore) break;
    }
    expect(new Set(seen.map(({ txId }) => txId)).size).toBe(controlTransactionCount + 1);
    const numbers = seen.map(({ docketNumber }) => docketNumber);
    expect(numbers).toEqual(numbers.toSorted((left, right) => right - left));
    expect(seen.at(-1)).toMatchObject({ docketNumber: 0, operationType: 'genesis' });
    for (const query of ['page=0', 'pageSize=0', 'pageSize=101', 'page=x']) {
      expect((await register.get(`/history?${query}`, owner)).status, query).toBe(400);
    }
    const rejected = (await register.get('/proposals?status=Rejected', owner)).body as { items: object[] };
    expect(rejected.items).toHaveLength(2);
    expect((await register.get('/proposals?status=Forgotten', owner)).status).toBe(400);
    expect((await register.get(`/proposals/${'0'.repeat(64)}`, owner)).status).toBe(404);
  });

  test('title and metadata are facts of the ledger, and no caller may set the other members of a register', async () => {
    const path = `/api/registers/${register.registerId}`;
    const put = (who: Person, json: object) => here.api.send('PUT', path, { token: who.token, json });
    const changed = await put(owner, { title: 'Assembly of ärger', metadata: { floor: '2' } });
    expect([200, 202]).toContain(changed.status);
    const shown = await here.api.expect(200, 'GET', path, { token: fourth.token });
    expect(shown.body).toMatchObject({
      title: 'Assembly of ärger',
      metadata: { floor: '2' },
      description: 'Made by a journey',
    });
    expect((await put(owner, { advertise: true })).body).toMatchObject({ advertise: true });
    for (const field of ['status', 'purpose', 'devMode', 'id']) {
      expect(codeOf(await put(owner, { [field]: 'x' })), field).toEqual([400, 'IMMUTABLE_FIELD']);
    }
    expect((await put(owner, { title: '' })).status).toBe(400);
    expect((await put(fourth, { title: 'Mine' })).status).toBe(403);
    expect((await put(stranger, { title: 'Mine' })).status).toBe(403);
    const { body } = await register.get('/history?pageSize=1', owner);
    expect(historyPage.parse(body).items[0]).toMatchObject({
      operationType: expect.stringContaining('metadata'),
    });
  });

  test('the whole chain verifies offline', async () => {
    const evidence = await collectEvidence(here.api, owner.token, register.registerId);
    expect(checkEvidence(evidence)).toMatch(/^[0-9a-f]{64}$/);
  });

  test('an owner or admin deletes the register in this installation, and no other caller does', async () => {
    const path = `/api/registers/${register.registerId}`;
    const remove = ({ token }: Person) => here.api.send('DELETE', path, { token });
    expect((await remove(fourth)).status).toBe(403);
    expect([403, 404]).toContain((await remove(stranger)).status);
    const last = {
      registerId: register.registerId,
      sender: owner.wallet.walletAddress,
      payload: { last: true },
    };
    await waitConfirmed(
      here.api,
      owner.token,
      register.registerId,
      await submitThroughRegister(here.api, owner.token, last),
    );
    const gone = await remove(owner);
    expect(gone.status).toBe(204);
    expect(gone.headers.get('warning')).toMatch(/replica/);
    for (const who of [owner, second, fourth]) {
      expect((await here.api.send('GET', path, { token: who.token })).status).toBe(404);
    }
    expect((await remove(owner)).status).toBe(404);
    expect((await register.propose(second, addOf(stranger, 'Auditor'))).status).toBe(404);
    const listed = await here.api.expect(200, 'GET', '/api/registers?pageSize=100', { token: owner.token });
    const ids = (listed.body as { items: { id: string }[] }).items.map(({ id }) => id);
    expect(ids).not.toContain(register.registerId);
  });
});

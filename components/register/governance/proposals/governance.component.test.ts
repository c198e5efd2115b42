import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { memberDid } from '#core/ledger/did.ts';
import { buildOperation, governanceDraft } from '#core/ledger/governance/build.ts';
import {
  approvalDigest,
  GOVERNANCE_PAYLOAD_VERSION,
  type Operation,
} from '#core/ledger/governance/operation.ts';
import { parseRules } from '#core/ledger/governance/rules-json.ts';
import { boundTxId, payloadHash, signingDigest } from '#core/ledger/transaction.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type TestKey, testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';

const [owner, second, third, fourth] = [testKey(1), testKey(2), testKey(3), testKey(4)];
const didOf = (key: TestKey) => memberDid(key.walletAddress);

describe('governance', () => {
  let register: TestRegister;
  let registerId: string;
  beforeAll(async () => {
    register = await startTestRegister('governance');
    const { wallets } = register;
    wallets.own('second', second);
    wallets.own('third', third);
  });
  afterAll(() => register.stop());
  beforeEach(async () => {
    registerId = await register.createRegister();
  });

  const get = (rest: string, token = 'admin') =>
    register.call('GET', `/api/registers/${registerId}/governance${rest}`, { token });
  const post = (rest: string, body: unknown, token = 'admin') =>
    register.call('POST', `/api/registers/${registerId}/governance${rest}`, { token, body });
  const propose = (operation: object, token = 'admin') => post('/propose', operation, token);
  const vote = (proposalId: string, body: object, token: string) =>
    post(`/proposals/${proposalId}/approvals`, body, token);
  const sealed = () => register.seal(registerId);
  const roles = async () => {
    const { members } = (await get('/roster')).body;
    return Object.fromEntries(members.map((one: { did: string; role: string }) => [one.did, one.role]));
  };

  const addOf = (key: TestKey, targetRole = 'Admin') => ({
    operationType: 'add-member',
    targetDid: didOf(key),
    targetRole,
    targetKey: { publicKey: key.publicKey, algorithm: key.algorithm },
  });

  /** Adds a member while the owner is the only voter, or with sufficient approvals. */
  async function add(key: TestKey, role = 'Admin') {
    const answer = await propose(addOf(key, role));
    expect([answer.status, answer.body.requiresGovernanceVote]).toEqual([202, false]);
    await sealed();
  }

  /** Two admins beside the owner: three voters, two votes decide. */
  async function threeVoters() {
    await add(second);
    const opened = await propose(addOf(third));
    expect(opened.body).toMatchObject({ requiresGovernanceVote: true, votesReceived: 1, votesRequired: 2 });
    await sealed();
    expect((await vote(opened.body.proposalId, { decision: 'approve' }, 'second')).status).toBe(202);
    await sealed();
    await enactment();
  }

  /** Seals the enactment that an approved proposal triggers. */
  async function enactment() {
    await waitFor(() => register.validators.pooled(registerId).length > 0, { what: 'the enactment' });
    await sealed();
  }

  it('the owner alone adds an admin, and the history shows it', async () => {
    const before = await get('/roster');
    expect(before.body).toMatchObject({ count: 1, quorum: { voters: 1, required: 1, ownerCanBypass: true } });
    await add(second);
    expect(await roles()).toEqual({ [didOf(owner)]: 'Owner', [didOf(second)]: 'Admin' });
    const { body } = await get('/history');
    expect(body.totalCount).toBe(2);
    expect(body.items[0]).toMatchObject({
      operationType: 'add-member',
      event: 'enacted',
      proposerDid: didOf(owner),
      target: didOf(second),
      docketNumber: 1,
    });
    expect(body.items[1]).toMatchObject({ operationType: 'genesis', docketNumber: 0 });
    const after = await get('/roster');
    expect(after.body.rosterHash).not.toBe(before.body.rosterHash);
    expect(after.body.quorum).toMatchObject({ voters: 2, required: 2, ownerCanBypass: false });
  });

  it('an admin alone removes no member; a quorum does, and the enactment follows automatically', async () => {
    await threeVoters();
    const operation = { operationType: 'remove-member', targetDid: didOf(third) };
    const alone = await propose({ ...operation, mode: 'direct' }, 'second');
    expect([alone.status, alone.body.code]).toEqual([403, 'VAL_PERM_008']);
    const opened = await propose(operation, 'second');
    expect(opened.body).toMatchObject({ requiresGovernanceVote: true, votesReceived: 1, votesRequired: 2 });
    await sealed();
    const { proposalId } = opened.body;
    const ballot = await get(`/proposals/${proposalId}`);
    expect(ballot.body).toMatchObject({ status: 'Pending', votesReceived: 1, target: didOf(third) });
    expect(ballot.body.dataToSign.map((one: { approverDid: string }) => one.approverDid)).toEqual([
      didOf(owner),
    ]);
    expect((await vote(proposalId, { decision: 'approve', comment: 'so be it' }, 'admin')).status).toBe(202);
    await sealed();
    expect((await get(`/proposals/${proposalId}`)).body).toMatchObject({
      status: 'Approved',
      votesReceived: 2,
    });
    expect(await roles()).toHaveProperty([didOf(third)]);
    await enactment();
    expect(await roles()).not.toHaveProperty([didOf(third)]);
    expect((await get(`/proposals/${proposalId}`)).body).toMatchObject({ status: 'Recorded' });
    const late = await vote(proposalId, { decision: 'reject' }, 'second');
    expect([late.status, late.body.code]).toEqual([409, 'PROPOSAL_CLOSED']);
    const events = (await get('/history')).body.items.map((one: { event: string }) => one.event);
    expect(events.slice(0, 3)).toEqual(['enacted', 'voted', 'proposed']);
  });

  it('ownership is transferred to an admin who accepts, not to a designer', async () => {
    await add(second);
    const opened = await propose({ operationType: 'transfer-ownership', targetDid: didOf(second) });
    expect(opened.body).toMatchObject({ requiresGovernanceVote: true });
    await sealed();
    expect((await vote(opened.body.proposalId, { decision: 'approve' }, 'second')).status).toBe(202);
    await sealed();
    await enactment();
    expect(await roles()).toMatchObject({ [didOf(second)]: 'Owner', [didOf(owner)]: 'Admin' });
  });

  it('refuses a transfer to a designer and the removal of the last owner', async () => {
    await add(fourth, 'Designer');
    const transfer = await propose({ operationType: 'transfer-ownership', targetDid: didOf(fourth) });
    expect([transfer.status, transfer.body.code]).toEqual([422, 'VAL_PERM_006']);
    const removal = await propose({ operationType: 'remove-member', targetDid: didOf(owner) });
    expect([removal.status, removal.body.code]).toEqual([422, 'VAL_PERM_005']);
  });

  it('counts no forged approval, and each approver once', async () => {
    await threeVoters();
    const asked = (await get('/roster')).body;
    const operation: Operation = {
      operationType: 'add-member',
      proposerDid: didOf(second),
      proposedAt: '2026-11-21T12:00:00.0000000+00:00',
      targetDid: didOf(fourth),
      targetRole: 'Auditor',
      targetKey: { publicKey: fourth.publicKey, algorithm: 'ED25519' },
    };
    const now = new Date().toISOString();
    const proposed = { ...operation, proposedAt: now };
    const approvalOf = (key: TestKey, signer: TestKey) => {
      const facts = { registerId, approverDid: didOf(key), isApproval: true, operation: proposed };
      const digest = approvalDigest({ ...facts, rosterHashBefore: asked.rosterHash });
      const signature = encodeBase64(signer.signer.signDigest(Buffer.from(digest, 'hex')));
      return { approverDid: didOf(key), signature, isApproval: true };
    };
    const request = { ...addOf(fourth, 'Auditor'), proposedAt: now, mode: 'direct' };
    const forged = await propose({ ...request, approvals: [approvalOf(third, fourth)] }, 'second');
    expect([forged.status, forged.body.code]).toEqual([403, 'VAL_PERM_008']);
    const own = approvalOf(second, second);
    const doubled = await propose({ ...request, approvals: [own, own] }, 'second');
    expect([doubled.status, doubled.body.code]).toEqual([403, 'VAL_PERM_008']);
    const good = await propose({ ...request, approvals: [approvalOf(third, third)] }, 'second');
    expect([good.status, good.body.requiresGovernanceVote]).toEqual([202, false]);
    await sealed();
    expect(await roles()).toMatchObject({ [didOf(fourth)]: 'Auditor' });
  });

  it('a proposal made for an older roster is void', async () => {
    await threeVoters();
    const opened = await propose(addOf(fourth), 'second');
    const other = await propose({ operationType: 'remove-member', targetDid: didOf(third) }, 'second');
    await sealed();
    expect((await vote(other.body.proposalId, { decision: 'approve' }, 'admin')).status).toBe(202);
    await sealed();
    await enactment();
    const { proposalId } = opened.body;
    expect((await get(`/proposals/${proposalId}`)).body).toMatchObject({ rosterChanged: true });
    const late = await vote(proposalId, { decision: 'approve' }, 'admin');
    expect([late.status, late.body.code]).toEqual([422, 'VAL_PERM_009']);
  });

  it('rejects a proposal that can no longer pass', async () => {
    await add(second);
    const opened = await propose(addOf(third));
    await sealed();
    const { proposalId } = opened.body;
    expect((await vote(proposalId, { decision: 'reject' }, 'second')).status).toBe(202);
    await sealed();
    expect((await get(`/proposals/${proposalId}`)).body).toMatchObject({ status: 'Rejected' });
    const rejected = await get('/proposals?status=rejected');
    expect(rejected.body).toMatchObject({ totalCount: 1, items: [{ proposalId }] });
    expect((await get('/proposals?status=pending')).body.totalCount).toBe(0);
  });

  it('refuses callers who are not on the roster, and invalid operations', async () => {
    const stranger = await propose(addOf(second), 'user');
    expect([stranger.status, stranger.body.code]).toEqual([403, 'NOT_ON_ROSTER']);
    const foreign = await propose(addOf(second), 'stranger');
    expect([foreign.status, foreign.body.code]).toEqual([403, 'SUBSCRIPTION_REQUIRED']);
    expect((await get('/roster', 'stranger')).status).toBe(404);
    const pretended = await propose({ ...addOf(second), proposerDid: didOf(second) });
    expect([pretended.status, pretended.body.code]).toEqual([403, 'NOT_ON_ROSTER']);
    for (const operation of [
      { operationType: 'anything' },
      { operationType: 'add-member', targetDid: 'nobody', targetRole: 'Admin' },
      { operationType: 'remove-member' },
      { ...addOf(second), targetRole: 'King' },
      {},
    ]) {
      expect((await propose(operation)).status, JSON.stringify(operation)).toBe(400);
    }
    const unknown = await get(`/proposals/${'a'.repeat(64)}`);
    expect([unknown.status, unknown.body.code]).toEqual([404, 'PROPOSAL_NOT_FOUND']);
    expect((await vote('nothing', { decision: 'approve' }, 'admin')).status).toBe(404);
    expect((await get('/history?pageSize=0')).status).toBe(400);
  });

  it('an auditor can read and cannot change anything', async () => {
    await add(second, 'Auditor');
    const denied = await propose(addOf(third), 'second');
    expect([denied.status, denied.body.code]).toEqual([403, 'VAL_PERM_003']);
  });

  /** A governance transaction signed by an external wallet. */
  function signedBy(key: TestKey, actionId: string, payload: object) {
    const createdAt = new Date().toISOString();
    const { blueprintId, metadata } = governanceDraft(actionId, payload);
    const hash = payloadHash(payload);
    const envelope = { registerId, blueprintId, actionId, payloadHash: hash, createdAt, metadata };
    const transactionId = boundTxId({ ...envelope, type: 'Control' }, [key.publicKey]);
    const signatureValue = encodeBase64(key.signer.signDigest(signingDigest(transactionId, hash)));
    const signatures = [{ publicKey: key.publicKey, signatureValue, algorithm: 'ED25519' }];
    return { transactionId, actionId, payload, createdAt, metadata, signatures };
  }

  /** The payload of an operation that the owner proposes now. */
  async function payloadOf(operation: object) {
    const { rules, height } = await register.state(registerId);
    if (rules === undefined) throw new Error('no rules');
    const proposedAt = new Date().toISOString();
    const proposed = { ...operation, proposerDid: didOf(owner), proposedAt } as Operation;
    const verifier = createVerifier(nodeEd25519());
    return buildOperation(rules, proposed, { docketNumber: height, timestamp: proposedAt, verifier });
  }

  it('accepts transactions signed by an external wallet', async () => {
    const roster = (await get('/roster')).body;
    const transaction = signedBy(owner, 'add-member', await payloadOf(addOf(second)));
    const answer = await propose({ transaction }, 'user');
    expect([answer.status, answer.body.txId]).toEqual([202, transaction.transactionId]);
    await sealed();
    expect((await get('/roster')).body.rosterHash).not.toBe(roster.rosterHash);
  });

  it('pages its history, newest first', async () => {
    for (const role of ['Auditor', 'Designer', 'Auditor']) {
      const known = (await roles())[didOf(second)];
      const operation =
        known === undefined
          ? addOf(second, role)
          : { operationType: 'change-role', targetDid: didOf(second), targetRole: role };
      expect((await propose(operation)).status).toBe(202);
      await sealed();
    }
    const pages = [];
    for (const page of [1, 2]) pages.push((await get(`/history?page=${page}&pageSize=2`)).body);
    expect(pages[0]).toMatchObject({ totalCount: 4, totalPages: 2, hasMore: true });
    expect(pages[1].hasMore).toBe(false);
    const dockets = pages.flatMap((one) =>
      one.items.map((item: { docketNumber: number }) => item.docketNumber),
    );
    expect(dockets).toEqual([3, 2, 1, 0]);
  });

  it('stores texts that columns cannot hold, or that this service refuses to write, as they were signed', async () => {
    await add(second);
    const justification = 'a\u0000b\u202e';
    const payload = await payloadOf({ ...addOf(third), justification });
    const opening = signedBy(owner, 'control.governance.propose', payload);
    expect((await propose({ transaction: opening }, 'user')).status).toBe(202);
    await sealed();
    const proposalId = opening.transactionId;
    const ballot = { version: GOVERNANCE_PAYLOAD_VERSION, proposalId, decision: 'reject' };
    const rejection = signedBy(second, 'control.governance.approve', { ...ballot, comment: justification });
    expect((await vote(proposalId, { transaction: rejection }, 'user')).status).toBe(202);
    await sealed();
    const shown = (await get(`/proposals/${proposalId}`)).body;
    expect([shown.operation.justification, shown.votes[1].comment]).toEqual([justification, justification]);
    expect((await get('/history')).body.items[0].operation.justification).toBe('a\ufffdb\u202e');
  });

  it.each(['a\u0000b', 'a\u202eb', 'a\u00adb', 'a\rb'])('writes no reason like %j itself', async (text) => {
    await threeVoters();
    const opened = await propose({ operationType: 'remove-member', targetDid: didOf(third) }, 'second');
    await sealed();
    const { proposalId } = opened.body;
    const approval = { approverDid: didOf(third), signature: 'AA==', isApproval: true, comment: text };
    const refused = [
      await propose({ ...addOf(fourth), justification: text }),
      await propose({ ...addOf(fourth), approvals: [approval] }),
      await vote(proposalId, { decision: 'reject', comment: text }, 'admin'),
      await vote(proposalId, { approvals: [approval] }, 'admin'),
    ];
    expect(refused.map(({ status, body }) => [status, body.code])).toEqual(
      Array(4).fill([400, 'INVALID_REQUEST']),
    );
    expect(register.validators.pooled(registerId)).toEqual([]);
  });

  it('answers a repeated proposal by Idempotency-Key with the first answer', async () => {
    const headers = { 'idempotency-key': `key-${registerId}` };
    const send = (role: string) =>
      register.call('POST', `/api/registers/${registerId}/governance/propose`, {
        token: 'admin',
        headers,
        body: addOf(second, role),
      });
    const first = await send('Admin');
    expect((await send('Admin')).body).toEqual(first.body);
    expect((await send('Auditor')).body.code).toBe('IDEMPOTENCY_KEY_REUSED');
    expect(register.validators.pooled(registerId)).toHaveLength(1);
  });

  it('answers 503 without validators, and stores no answer for the key', async () => {
    register.validators.down = true;
    const refused = await propose(addOf(second));
    register.validators.down = false;
    expect([refused.status, refused.body.code]).toEqual([503, 'VALIDATOR_UNAVAILABLE']);
    expect((await propose(addOf(second))).status).toBe(202);
  });

  it('stores rules that can be parsed again', async () => {
    await add(second);
    const row = await register.database.pool.query(
      'select rules, docket_number from register_rules join registers using (register_no) where register_id = $1',
      [registerId],
    );
    const rules = parseRules(JSON.parse(row.rows[0].rules));
    expect([rules.roster.length, rules.controlCount, row.rows[0].docket_number]).toEqual([2, 1, 1]);
  });
});

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { adminKey, type Managed, startManaged, startMs } from './managed.fixture.ts';

describe('changes of registers of custom resources', () => {
  let managed: Managed;
  beforeAll(async () => {
    managed = await startManaged('changes');
  });
  afterAll(() => managed.register.stop());

  describe('change when the ledger seals the change', () => {
    it('title, description and metadata, one at a time', async () => {
      const { uid, registerId } = await managed.online({ metadata: { a: '1' } });
      const body = { change: 'metadata', title: 'Renamed', metadata: { b: '2' } };
      const done = await managed.change(uid, body);
      expect([done.status, done.body]).toMatchObject([
        202,
        { registerId, change: 'metadata', status: 'submitted' },
      ]);
      const again = await managed.change(uid, body);
      expect([again.status, again.body.code, again.body.txId]).toEqual([
        409,
        'CHANGE_OUTSTANDING',
        done.body.txId,
      ]);
      expect((await managed.get(uid)).body.outstanding).toMatchObject([
        { change: 'metadata', txId: done.body.txId },
      ]);
      await managed.sealed(registerId);
      expect((await managed.get(uid)).body).toMatchObject({
        title: 'Renamed',
        metadata: { a: '1', b: '2' },
        outstanding: [],
      });
      expect((await managed.change(uid, body)).status).toBe(202);
      expect((await managed.change(uid, { change: 'metadata' })).body.code).toBe('INVALID_REQUEST');
    });

    it('are submitted once per key, and concurrent ones once', async () => {
      const { uid, registerId } = await managed.online();
      const body = { change: 'policy', policy: { consensus: { docketBuildIntervalMs: 700 } } };
      const both = await Promise.all([
        managed.change(uid, body),
        managed.change(uid, body),
        managed.change(uid, body),
      ]);
      expect(both.map(({ status }) => status).toSorted()).toEqual([202, 409, 409]);
      await managed.sealed(registerId);
      expect((await managed.get(uid)).body).toMatchObject({
        policyVersion: 2,
        policy: { consensus: { docketBuildIntervalMs: 700 } },
      });
      const headers = { 'idempotency-key': 'k1' };
      const second = { change: 'policy', policy: { consensus: { docketBuildIntervalMs: 800 } } };
      const first = await managed.change(uid, second, headers);
      expect((await managed.change(uid, second, headers)).body).toEqual(first.body);
      expect((await managed.change(uid, body, headers)).body.code).toBe('IDEMPOTENCY_KEY_REUSED');
      const bad = await managed.change(uid, {
        change: 'policy',
        policy: { consensus: { maxDocketBytes: 1 } },
      });
      expect(bad.body.code).toBe('CHANGE_OUTSTANDING');
      await managed.sealed(registerId);
      const refused = await managed.change(uid, {
        change: 'policy',
        policy: { consensus: { maxDocketBytes: 1 } },
      });
      expect([refused.status, refused.body.code]).toEqual([400, 'INVALID_POLICY']);
    });

    it('are submitted once, also when the answer of a validator is lost in a crash', async () => {
      const { uid, registerId } = await managed.online();
      const { validators } = managed.register;
      const kept = validators.submit;
      const body = { change: 'metadata', title: 'Kept' };
      const lost = async () => {
        throw new Error('the process ended here');
      };
      // Lost before the validator had it: nothing is outstanding, and the next call starts again.
      validators.submit = lost;
      expect((await managed.change(uid, body)).status).toBe(500);
      expect((await managed.get(uid)).body.outstanding).toEqual([]);
      // Lost after the validator had it: the next call reports it.
      validators.submit = async (at, submission) => {
        await kept(at, submission);
        return lost();
      };
      expect((await managed.change(uid, body)).status).toBe(500);
      validators.submit = kept;
      expect(validators.pooled(registerId)).toHaveLength(1);
      const again = await managed.change(uid, body);
      expect([again.status, again.body.code]).toEqual([409, 'CHANGE_OUTSTANDING']);
      await managed.sealed(registerId);
      expect((await managed.get(uid)).body).toMatchObject({ title: 'Kept', outstanding: [] });
    });

    it('turn development mode off permanently', async () => {
      const { uid, registerId } = await managed.online({ devMode: true });
      expect((await managed.change(uid, { change: 'devModeOff' })).status).toBe(202);
      await managed.sealed(registerId);
      expect((await managed.get(uid)).body.devMode).toBe(false);
      const again = await managed.change(uid, { change: 'devModeOff' });
      expect([again.status, again.body.code]).toEqual([409, 'DEV_MODE_ALREADY_DISABLED']);
    });

    it('admit, remove and rotate validators', async () => {
      const { uid, registerId } = await managed.online();
      const unknown = await managed.change(uid, { change: 'addValidator', validatorId: 'validator-5' });
      expect([unknown.status, unknown.body.code]).toEqual([404, 'VALIDATOR_NOT_FOUND']);
      const added = await managed.change(uid, { change: 'addValidator', validatorId: 'validator-4' });
      expect([added.status, added.body.status]).toEqual([202, 'submitted']);
      await managed.sealed(registerId);
      expect((await managed.get(uid)).body.validators).toMatchObject({
        size: 5,
        quorum: 4,
        faultTolerance: 1,
      });
      const twice = await managed.change(uid, { change: 'addValidator', validatorId: 'validator-4' });
      expect([twice.status, twice.body.code]).toEqual([422, 'VAL_PERM_017']);
      managed.register.validators.away.add('validator-0').add('validator-2');
      const tooFew = await managed.change(uid, { change: 'removeValidator', validatorId: 'validator-3' });
      managed.register.validators.away.clear();
      expect([tooFew.status, tooFew.body.code]).toEqual([422, 'VAL_PERM_011']);
      expect(
        (await managed.change(uid, { change: 'removeValidator', validatorId: 'validator-4' })).status,
      ).toBe(202);
      expect(
        (
          await managed.change(uid, {
            change: 'addMember',
            walletAddress: adminKey.walletAddress,
            role: 'Admin',
            targetKey: { publicKey: adminKey.publicKey, algorithm: adminKey.algorithm },
          })
        ).status,
      ).toBe(202);
      await managed.register.seal(registerId);
      expect((await managed.get(uid)).body).toMatchObject({
        validators: { size: 4 },
        roster: [{ role: 'Owner' }, { role: 'Admin' }],
      });
    });

    it('the key of a validator', async () => {
      const { uid, registerId } = await managed.online();
      const key = (await managed.get(uid)).body.validators.members[1].publicKey;
      expect(
        (await managed.change(uid, { change: 'rotateValidatorKey', validatorId: 'validator-1' })).status,
      ).toBe(202);
      await managed.sealed(registerId);
      expect((await managed.get(uid)).body.validators.members[1].publicKey).not.toBe(key);
      const none = await managed.change(uid, { change: 'rotateValidatorKey', validatorId: 'validator-9' });
      expect([none.status, none.body.code]).toEqual([404, 'VALIDATOR_NOT_FOUND']);
    });

    it('by a vote where other members must agree', async () => {
      managed.register.wallets.own('third', adminKey);
      const { uid, registerId } = await managed.online();
      const targetKey = { publicKey: adminKey.publicKey, algorithm: adminKey.algorithm };
      await managed.change(uid, {
        change: 'addMember',
        walletAddress: adminKey.walletAddress,
        role: 'Admin',
        targetKey,
      });
      await managed.sealed(registerId);
      const asked = await managed.change(uid, {
        change: 'policy',
        policy: { consensus: { docketBuildIntervalMs: 900 } },
      });
      expect(asked.body).toMatchObject({ status: 'voting', votesReceived: 1, votesRequired: 2 });
      await managed.sealed(registerId);
      const { body } = await managed.get(uid);
      expect(body.pendingProposals).toMatchObject([
        {
          proposalId: asked.body.proposalId,
          operationType: 'policy-update',
          votedByOperator: true,
          status: 'Pending',
        },
      ]);
      expect(body.policyVersion).toBe(1);
      const { proposalId } = asked.body;
      const no = await managed.change(uid, {
        change: 'vote',
        proposalId: 'ab'.repeat(32),
        decision: 'approve',
      });
      expect([no.status, no.body.code]).toEqual([404, 'PROPOSAL_NOT_FOUND']);
      const path = `/api/registers/${registerId}/governance/proposals/${proposalId}/approvals`;
      const voted = await managed.register.call('POST', path, {
        token: 'third',
        body: { decision: 'approve' },
      });
      expect(voted.status).toBe(202);
      await managed.sealed(registerId);
      await waitFor(async () => {
        if (managed.register.validators.pooled(registerId).length > 0)
          await managed.register.seal(registerId);
        return (await managed.get(uid)).body.policyVersion === 2;
      });
    });

    it('are refused before the ledger begins and while it is halted', async () => {
      const made = await managed.put(randomUUID());
      const early = await managed.change(made.body.uid, { change: 'metadata', title: 'Early' });
      expect([early.status, early.body.code]).toEqual([503, 'REGISTER_NOT_READY']);
      const { uid, registerId } = await managed.online();
      const halt = "update registers set status = 'Halted' where register_id = $1";
      await managed.register.database.pool.query(halt, [registerId]);
      const late = await managed.change(uid, { change: 'metadata', title: 'Late' });
      expect([late.status, late.body.code]).toEqual([409, 'REGISTER_HALTED']);
      expect((await managed.get(uid)).body).toMatchObject({
        phase: 'Halted',
        haltedReason: 'two certificates for one height were seen',
      });
    });
  });

  it('are started, paused and stopped at all validators', async () => {
    const { uid, registerId } = await managed.online();
    managed.register.validators.away.add('validator-3');
    expect((await managed.lead(uid, 'Paused')).body).toEqual({
      registerId,
      validation: 'Paused',
      reachable: 3,
      failed: ['validator-3'],
    });
    managed.register.validators.away.clear();
    expect((await managed.lead(uid, 'Paused')).body).toMatchObject({ reachable: 4, failed: [] });
    expect((await managed.get(uid)).body.validation).toBe('Paused');
    expect((await managed.lead(uid, 'Running')).status).toBe(200);
    expect((await managed.get(uid)).body.validation).toBe('Running');
    managed.register.validators.down = true;
    expect([
      (await managed.lead(uid, 'Stopped')).status,
      (await managed.get(uid)).body.validators.reachable,
    ]).toEqual([503, 0]);
    managed.register.validators.down = false;
  });

  it('report equivocating validators and the reason of a halt', async () => {
    const { uid } = await managed.online();
    const evidence = [
      { kind: 'duplicate-vote', validatorIds: ['validator-2'], height: 1, seenAtMs: startMs },
    ];
    managed.register.validators.said.set('validator-0', { evidence });
    managed.register.validators.said.set('validator-1', {
      evidence,
      status: 'Halted',
      reason: 'two certificates',
    });
    const { body } = await managed.get(uid);
    managed.register.validators.said.clear();
    expect(body).toMatchObject({
      validation: 'Halted',
      haltedReason: 'two certificates',
      equivocation: [
        { kind: 'duplicate-vote', validatorIds: ['validator-2'], seenAt: new Date(startMs).toISOString() },
      ],
    });
    expect(body.equivocation).toHaveLength(1);
  });
});

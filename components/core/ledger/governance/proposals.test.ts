import { describe, expect, it } from 'vitest';
import { buildEnactment, buildOperation, governanceDraft } from './build.ts';
import type { Operation } from './operation.ts';
import { owner, type Person, person, Scene, system } from './testing/scene.ts';

const admin = person(2);
const other = person(3);
const auditor = person(5);
const stranger = person(7);

class Board extends Scene {
  constructor() {
    super({
      members: [
        [admin, 'Admin'],
        [other, 'Admin'],
        [auditor, 'Auditor'],
      ],
    });
  }

  /** Opens a proposal and returns its id, or the codes of the refusal. */
  open(operation: Operation, ...signers: readonly Person[]): string {
    const draft = governanceDraft('control.governance.propose', this.payload(operation));
    const transaction = this.transaction(draft, signers);
    const fold = this.seal(transaction);
    return 'violations' in fold ? fold.violations.map(({ code }) => code).join() : transaction.txId;
  }

  vote(proposalId: string, decision: 'approve' | 'reject', ...signers: readonly Person[]): string[] {
    return this.act('control.governance.approve', { version: 2, proposalId, decision }, ...signers);
  }

  enact(enactsProposalId: string, signer: Person = system): string[] {
    return this.act('control.governance.enact', { version: 2, enactsProposalId }, signer);
  }

  removal(proposer: Person = admin) {
    return this.operation('remove-member', proposer, { targetDid: auditor.did });
  }
}

describe('a proposal', () => {
  it('is opened, approved by a quorum and enacted, each by a transaction', () => {
    const board = new Board();
    const proposalId = board.open(board.removal(), admin);
    expect(board.rules.proposals).toMatchObject([
      {
        proposalId,
        status: 'Pending',
        required: 2,
        eligible: 3,
        votes: [{ did: admin.did, isApproval: true }],
      },
    ]);
    expect(board.enact(proposalId)).toEqual(['VAL_PERM_008']);
    const { timestamp } = board.context;
    expect(board.vote(proposalId, 'approve', other)).toEqual([]);
    expect(board.rules.proposals).toMatchObject([{ status: 'Approved', approvedAt: timestamp }]);
    expect(board.roleOf(auditor)).toBe('Auditor');
    expect(board.vote(proposalId, 'reject', owner)).toEqual(['VAL_PERM_012']);
    expect(board.enact(proposalId, stranger)).toEqual(['VAL_PERM_001']);
    expect(board.enact(proposalId)).toEqual([]);
    expect(board.roleOf(auditor)).toBeUndefined();
    expect(board.rules.proposals).toEqual([]);
    expect(board.enact(proposalId)).toEqual(['VAL_PERM_012']);
  });

  it('is reported with each change', () => {
    const board = new Board();
    const draft = governanceDraft('control.governance.propose', board.payload(board.removal()));
    const opening = board.transaction(draft, [admin, other]);
    expect(board.seal(opening)).toMatchObject({
      changes: [
        {
          kind: 'proposal',
          parts: ['proposals'],
          proposals: [{ txId: opening.txId, proposal: { status: 'Approved' } }],
        },
      ],
    });
    const enacting = board.transaction(
      governanceDraft('control.governance.enact', { version: 2, enactsProposalId: opening.txId }),
      [owner],
    );
    expect(board.seal(enacting)).toMatchObject({
      changes: [
        {
          kind: 'governance',
          parts: ['roster', 'proposals'],
          operation: { operationType: 'remove-member' },
          proposals: [{ proposal: { status: 'Recorded' } }],
        },
      ],
    });
  });

  it('accepts approvals that others signed, from any signer that may send control transactions', () => {
    const board = new Board();
    const operation = board.removal();
    const proposalId = board.open(operation, admin);
    const send = (approvals: unknown[], signer: Person) =>
      board.act('control.governance.approve', { version: 2, proposalId, approvals }, signer);
    const approval = board.approval(operation, other);
    expect(send([approval], stranger)).toEqual(['VAL_PERM_001']);
    expect(send([{ ...approval, approverDid: owner.did }], system)).toEqual(['VAL_PERM_015']);
    expect(send([{ ...approval, isApproval: false }], system)).toEqual(['VAL_PERM_015']);
    expect(send([board.approval(operation, admin)], system)).toEqual(['VAL_PERM_015']);
    expect(send([], system)).toEqual(['VAL_SCHEMA_001']);
    expect(send([{ ...approval, comment: 'yes' }], system)).toEqual([]);
    expect(board.rules.proposals[0]?.votes[1]).toMatchObject({ did: other.did, comment: 'yes' });
  });

  it('counts one vote of each voter, and only of voters', () => {
    const board = new Board();
    const proposalId = board.open(board.removal(), admin);
    expect(board.vote(proposalId, 'approve', admin)).toEqual(['VAL_PERM_015']);
    expect(board.vote(proposalId, 'approve', auditor)).toEqual(['VAL_PERM_003']);
    expect(board.vote(proposalId, 'approve', system)).toEqual(['VAL_PERM_015']);
    expect(board.act('control.governance.approve', { version: 2, proposalId }, owner)).toEqual([
      'VAL_SCHEMA_001',
    ]);
    expect(board.vote('ab'.repeat(32), 'approve', owner)).toEqual(['VAL_PERM_012']);
  });

  it('is rejected once it cannot be approved any more', () => {
    const board = new Board();
    const proposalId = board.open(board.removal(), admin);
    expect(board.vote(proposalId, 'reject', owner)).toEqual([]);
    expect(board.rules.proposals).toMatchObject([{ status: 'Pending' }]);
    const draft = governanceDraft('control.governance.approve', {
      version: 2,
      proposalId,
      decision: 'reject',
    });
    expect(board.seal(board.transaction(draft, [other]))).toMatchObject({
      changes: [{ proposals: [{ proposal: { status: 'Rejected' } }] }],
    });
    expect(board.rules.proposals).toEqual([]);
  });

  it('is void when the roster has changed, and expires', () => {
    const board = new Board();
    const proposalId = board.open(board.removal(), admin);
    const role = board.operation('change-role', owner, { targetDid: auditor.did, targetRole: 'Designer' });
    expect(board.decide(role, owner, admin)).toEqual([]);
    expect(board.vote(proposalId, 'approve', other)).toEqual(['VAL_PERM_009']);
    expect(board.enact(proposalId)).toEqual(['VAL_PERM_009']);
    const next = board.open(board.removal(), admin);
    expect(board.vote(next, 'approve', other)).toEqual([]);
    board.seconds += 7 * 86_400;
    expect(board.vote(next, 'approve', owner)).toEqual(['VAL_PERM_013']);
    expect(board.enact(next)).toEqual(['VAL_PERM_013']);
    const draft = governanceDraft('control.governance.propose', board.payload(board.removal()));
    expect(board.seal(board.transaction(draft, [admin]))).toMatchObject({
      expired: [{ proposal: { proposalId, status: 'Expired' } }, { proposal: { proposalId: next } }],
    });
    expect(board.rules.proposals).toHaveLength(1);
  });

  it('lasts no longer than its proposer and the policy allow', () => {
    const board = new Board();
    const short = { ...board.removal(), expiresAt: board.context.timestamp };
    expect(board.open(short, admin)).toBe('VAL_PERM_013');
    const long = { ...board.removal(), expiresAt: '9999-12-31T23:59:59Z' };
    board.open(long, admin);
    const lastsMs =
      Date.parse(board.rules.proposals[0]?.expiresAt ?? '') - Date.parse(board.removal().proposedAt) + 60_000;
    expect(lastsMs).toBe(7 * 86_400_000);
    const strange = { ...board.removal(), expiresAt: '0000-01-01T00:00:00+23:59' };
    expect(board.open(strange, admin)).toBe('VAL_PERM_013');
  });

  it('of ownership needs the approval of the target, whose refusal ends it', () => {
    const board = new Board();
    const transfer = board.operation('transfer-ownership', owner, { targetDid: admin.did });
    const proposalId = board.open(transfer, owner);
    expect(board.vote(proposalId, 'approve', other)).toEqual([]);
    expect(board.enact(proposalId)).toEqual(['VAL_PERM_010']);
    expect(board.vote(proposalId, 'approve', admin)).toEqual([]);
    expect(board.enact(proposalId)).toEqual([]);
    expect(board.roleOf(admin)).toBe('Owner');
    const back = board.operation('transfer-ownership', admin, { targetDid: owner.did });
    const declined = board.open(back, admin);
    expect(board.vote(declined, 'reject', owner)).toEqual([]);
    expect(board.rules.proposals).toEqual([]);
  });

  it('must be possible when it is opened, and again when it is enacted', () => {
    const board = new Board();
    const twice = [1, 2].map((version) => {
      const policy = { version: 2, governance: { proposalTtlDays: version } };
      return board.open(board.operation('policy-update', admin, { policy }), admin, other);
    });
    expect(board.rules.proposals).toHaveLength(2);
    expect(board.enact(twice[0] ?? '')).toEqual([]);
    expect(board.enact(twice[1] ?? '')).toEqual(['VAL_POLICY_004']);
    expect(board.open(board.operation('policy-update', admin, { policy: { version: 9 } }), admin)).toBe(
      'VAL_POLICY_004',
    );
    const payload = { ...board.payload(board.removal()), rosterHashAfter: 'ab'.repeat(32) };
    expect(board.act('control.governance.propose', payload, admin)).toEqual(['VAL_SCHEMA_001']);
    expect(board.open(board.removal(auditor), auditor)).toBe('VAL_PERM_003');
  });

  it('and the same operation in one transaction take effect once', () => {
    const board = new Board();
    const suspend = board.operation('suspend-validator', admin, { validatorId: 'validator-3' });
    const proposalId = board.open(suspend, admin, other);
    const payload = board.payload(suspend, [other]);
    expect(board.act('suspend-validator', payload, admin)).toEqual([]);
    expect(board.enact(proposalId)).toEqual(['VAL_PERM_014']);
  });

  it('is one of 64 at most; void proposals make room', () => {
    const board = new Board();
    for (let count = 0; count < 64; count += 1) expect(board.open(board.removal(), admin)).toHaveLength(64);
    expect(board.open(board.removal(), admin)).toBe('VAL_PERM_018');
    const role = board.operation('change-role', owner, { targetDid: auditor.did, targetRole: 'Designer' });
    expect(board.decide(role, owner, admin)).toEqual([]);
    expect(board.open(board.removal(), admin)).toHaveLength(64);
    expect(board.rules.proposals).toHaveLength(1);
  });
});

describe('payloads that services build', () => {
  it('an operation with its hashes, or the reason why it is not possible', () => {
    const board = new Board();
    const { rules, context } = board;
    expect(buildOperation(rules, board.removal(), context)).toEqual(board.payload(board.removal()));
    const senseless = board.operation('remove-member', admin, { targetDid: stranger.did });
    expect(() => buildOperation(rules, senseless, context)).toThrow(
      expect.objectContaining({ kind: 'unprocessable', code: 'VAL_PERM_004' }),
    );
  });

  it('the same enactment in every service', () => {
    const board = new Board();
    board.open(board.removal(), admin);
    const [pending] = board.rules.proposals;
    expect(pending && buildEnactment(pending)).toBeUndefined();
    const { timestamp: createdAt } = board.context;
    const proposalId = board.open(board.removal(), admin, other);
    const approved = board.rules.proposals.at(-1);
    expect(approved && buildEnactment(approved)).toEqual({
      createdAt,
      draft: {
        blueprintId: 'register-governance-v1',
        actionId: 'control.governance.enact',
        metadata: { Type: 'Control', transactionType: 'Control' },
        payload: { version: 2, enactsProposalId: proposalId },
      },
    });
    expect(governanceDraft('control.crypto.update', {}, { policyVersion: '2' }).metadata).toEqual({
      Type: 'Control',
      transactionType: 'CryptoPolicyUpdate',
      policyVersion: '2',
    });
  });
});

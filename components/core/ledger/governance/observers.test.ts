import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeBase64 } from '../../encoding/base64.ts';
import { type ConsensusMessage, type ConsensusType, signBytes } from '../consensus.ts';
import { governanceDraft } from './build.ts';
import type { ControlTransaction } from './control.ts';
import { findSuspension, isSuspensionProposed } from './observers.ts';
import type { Evidence, Operation } from './operation.ts';
import { buildSuspension, suspensionTransaction } from './suspension.ts';
import {
  at,
  entryOf,
  keyOfValidator,
  owner,
  type Person,
  person,
  registerId,
  Scene,
  system,
} from './testing/scene.ts';

const admin = person(2);
const stranger = person(7);
const accused = keyOfValidator(3);
const witness = keyOfValidator(0);

type DoubleSign = Extract<Evidence, { kind: 'double-sign' }>;

interface MessageFields {
  readonly fill?: string | undefined;
  readonly height?: number;
  readonly round?: number;
  readonly type?: ConsensusType;
  readonly polRound?: number;
  readonly timestamp?: string;
  readonly register?: string;
}

function messageOf(said: MessageFields): ConsensusMessage {
  const { fill, height = 1, round = 1, type = 2, polRound = -1, register = registerId } = said;
  const hash = fill?.repeat(64) ?? '';
  return {
    type,
    networkId: 'here',
    registerId: register,
    height,
    round,
    polRound,
    docket: fill === undefined ? undefined : { docketHash: hash, merkleRoot: hash, logRoot: hash },
    validatorSetHash: 'c'.repeat(64),
    timestamp: said.timestamp ?? '2026-11-21T10:00:00Z',
  };
}

function signed(said: MessageFields, signer: Person): DoubleSign['first'] {
  const message = messageOf(said);
  const { docket, polRound, validatorSetHash, timestamp } = message;
  const signature = encodeBase64(signer.signer.sign(signBytes(message)));
  return { polRound, validatorSetHash, timestamp, signature, ...(docket && { docket }) };
}

/** Two messages at the position that `place` names, each with its signer. */
function twice(
  place: MessageFields,
  [a, b]: readonly [MessageFields, MessageFields],
  signers: readonly Person[] = [accused],
) {
  const { height = 1, round = 1, type = 2 } = place;
  const first = signed({ ...place, ...a }, signers[0] ?? accused);
  const second = signed({ ...place, ...b }, signers.at(-1) ?? accused);
  const evidence: DoubleSign = { kind: 'double-sign', networkId: 'here', type, height, round, first, second };
  return evidence;
}

const proven = twice({}, [{ fill: 'a' }, {}]);

class Court extends Scene {
  constructor() {
    super({ members: [[admin, 'Admin']], policy: { validators: { minValidators: 1 } } });
  }

  suspend(proposer: Person, evidence: Evidence, over: Partial<Operation> = {}): Operation {
    const plain = this.operation('suspend-validator', proposer, { validatorId: 'validator-3', evidence });
    return { ...plain, ...over } as Operation;
  }

  /** Opens a proposal and returns its id, or the codes of the refusal. */
  open(operation: Operation, ...signers: readonly Person[]): string {
    const draft = governanceDraft('control.governance.propose', this.payload(operation));
    const transaction = this.transaction(draft, signers);
    const fold = this.seal(transaction);
    return 'violations' in fold ? fold.violations.map(({ code }) => code).join() : transaction.txId;
  }

  accuse(evidence: Evidence = proven, proposer: Person = witness): string {
    return this.open(this.suspend(proposer, evidence), proposer);
  }

  vote(proposalId: string, decision: 'approve' | 'reject', signer: Person): string[] {
    return this.act('control.governance.approve', { version: 2, proposalId, decision }, signer);
  }

  enact(enactsProposalId: string): string[] {
    return this.act('control.governance.enact', { version: 2, enactsProposalId }, system);
  }
}

const isId = /^[0-9a-f]{64}$/;

describe('a suspension with evidence', () => {
  it.each([
    ['a validator', witness],
    ['the register-control key', system],
  ])('%s proposes it without a vote, and the roster enacts it', (_, proposer) => {
    const court = new Court();
    const proposalId = court.accuse(proven, proposer);
    expect(court.rules.proposals).toMatchObject([{ proposalId, votes: [], required: 2, status: 'Pending' }]);
    expect(findSuspension(court.rules, 'validator-3')?.proposalId).toBe(proposalId);
    expect(court.statusOf('validator-3')).toBe('Active');
    expect(court.enact(proposalId)).toEqual(['VAL_PERM_008']);
    expect(court.vote(proposalId, 'approve', owner)).toEqual([]);
    expect(court.vote(proposalId, 'approve', admin)).toEqual([]);
    expect(court.enact(proposalId)).toEqual([]);
    expect(court.statusOf('validator-3')).toBe('Suspended');
  });

  it.each<[string, Evidence]>([
    ['the same docket twice', twice({}, [{ fill: 'a' }, { fill: 'a' }])],
    [
      'the same docket at two times',
      twice({}, [{ fill: 'a' }, { fill: 'a', timestamp: '2026-11-21T10:00:01Z' }]),
    ],
    ['nil twice', twice({}, [{}, {}])],
    [
      'a message signed by another validator',
      twice({}, [{ fill: 'a' }, { fill: 'b' }], [accused, keyOfValidator(2)]),
    ],
    ['two messages of another validator', twice({}, [{ fill: 'a' }, { fill: 'b' }], [keyOfValidator(2)])],
    ['another round', { ...proven, round: 2 }],
    ['another height', { ...proven, height: 0 }],
    ['another kind', { ...proven, type: 3 }],
    ['two rounds', twice({}, [{ fill: 'a' }, { fill: 'b', round: 2 }])],
    ['two heights', twice({}, [{ fill: 'a' }, { fill: 'b', height: 0 }])],
    ['two kinds', twice({}, [{ fill: 'a' }, { fill: 'b', type: 3 }])],
    ['another network', { ...proven, networkId: 'there' }],
    ['another register', twice({}, [{ fill: 'a', register: 'ab'.repeat(16) }, { fill: 'b' }])],
    ['a height that is still to come', twice({ height: 9 }, [{ fill: 'a' }, {}])],
    ['votes that are called proposals', { ...proven, type: 1 }],
    ['an invalid signature', { ...proven, second: { ...proven.second, signature: 'AAAA' } }],
    ['slots out of order', { kind: 'missed-slots', dockets: [1, 2, 3, 4, 5, 6, 7, 8, 9, 9] }],
  ])('%s proves nothing, for every proposer and in every form', (_, given) => {
    const court = new Court();
    for (const proposer of [witness, system, owner])
      expect(court.accuse(given, proposer)).toBe('VAL_PERM_019');
    expect(court.decide(court.suspend(owner, given), owner, admin)).toEqual(['VAL_PERM_019']);
    expect(court.rules.proposals).toEqual([]);
    expect(court.rules.enacted).toEqual([]);
  });

  it('may be two proposals, also of one docket with two polkas', () => {
    const place = { type: 1, round: 5, fill: 'a' } as const;
    expect(new Court().accuse(twice(place, [{}, { fill: 'b' }]))).toMatch(isId);
    expect(new Court().accuse(twice(place, [{ polRound: 1 }, { polRound: 3 }]))).toMatch(isId);
  });

  it('counts only for the key that the validator has held since before that height', () => {
    const court = new Court();
    const later = person(90);
    const rotation = { validatorEntry: entryOf('validator-3', later) };
    expect(court.decide(court.operation('rotate-validator-key', owner, rotation), owner, admin)).toEqual([]);
    expect(court.docketNumber).toBe(2);
    expect(court.accuse(proven)).toBe('VAL_PERM_019');
    expect(court.accuse(twice({}, [{ fill: 'a' }, {}], [later]))).toBe('VAL_PERM_019');
    expect(court.accuse(twice({ height: 2 }, [{ fill: 'a' }, {}]))).toBe('VAL_PERM_019');
    expect(court.accuse(twice({ height: 2 }, [{ fill: 'a' }, {}], [later]))).toMatch(isId);
  });

  it('is not accepted from anyone else, nor from the accused', () => {
    const court = new Court();
    expect(court.accuse(proven, stranger)).toBe('VAL_PERM_001');
    expect(court.open(court.suspend(owner, proven), system)).toBe('VAL_PERM_003');
    expect(court.open(court.suspend(witness, proven), witness, stranger)).toBe('VAL_PERM_001');
    const bare = court.operation('suspend-validator', witness, { validatorId: 'validator-3' });
    expect(court.open(bare, witness)).toBe('VAL_PERM_001');
    expect(court.accuse(proven, accused)).toBe('VAL_PERM_003');
    expect(court.accuse(proven, keyOfValidator(9))).toBe('VAL_PERM_001');
    const removal = court.operation('remove-validator', witness, { validatorId: 'validator-3' });
    expect(court.open(removal, witness)).toBe('VAL_PERM_001');
    expect(court.decide(court.suspend(witness, proven), witness)).toEqual(['VAL_PERM_001']);
  });

  it('is refused with a shorter life than the policy gives', () => {
    const court = new Court();
    const over = (members: Partial<Operation>) =>
      court.open(court.suspend(witness, proven, members), witness);
    expect(over({ expiresAt: at(court.seconds + 120) })).toBe('VAL_PERM_013');
    court.seconds += 7_200;
    expect(over({ proposedAt: at(court.seconds - 3_601) })).toBe('VAL_PERM_013');
    expect(over({ proposedAt: at(court.seconds - 3_599) })).toMatch(isId);
  });
});

describe('the proposal to suspend a validator', () => {
  it('is accepted once, whichever observer sends it and whatever further evidence there is', () => {
    const court = new Court();
    const first = court.transaction(
      governanceDraft('control.governance.propose', court.payload(court.suspend(witness, proven))),
      [witness],
    );
    const other = keyOfValidator(1);
    const rival = court.transaction(
      governanceDraft('control.governance.propose', court.payload(court.suspend(other, proven))),
      [other],
    );
    expect(isSuspensionProposed(court.rules, 'validator-3')).toBe(false);
    expect(court.seal(first, rival)).toMatchObject({
      violations: [{ code: 'VAL_PERM_018' }],
      txId: rival.txId,
    });
    court.seal(first);
    expect(isSuspensionProposed(court.rules, 'validator-3')).toBe(true);
    expect(isSuspensionProposed(court.rules, 'validator-2')).toBe(false);
    const next = twice({ height: 2 }, [{ fill: 'c' }, { fill: 'd' }]);
    expect(court.accuse(next, other)).toBe('VAL_PERM_018');
    expect(court.accuse(proven, system)).toBe('VAL_PERM_018');
    expect(court.rules.proposals).toHaveLength(1);
  });

  it('is not accepted again after a rejection, except from a voter', () => {
    const court = new Court();
    const proposalId = court.accuse();
    expect(court.vote(proposalId, 'reject', owner)).toEqual([]);
    expect(court.rules.proposals).toEqual([]);
    expect(court.accuse(twice({ height: 2 }, [{ fill: 'a' }, {}]))).toBe('VAL_PERM_018');
    expect(court.accuse(proven, owner)).toMatch(isId);
  });

  it('is accepted again for another roster, and for a validator that was readmitted', () => {
    const court = new Court();
    court.accuse();
    const newcomer = person(5);
    const joining = { targetDid: newcomer.did, targetRole: 'Admin', targetKey: newcomer.key } as const;
    expect(court.decide(court.operation('add-member', owner, joining), owner, admin)).toEqual([]);
    const again = court.accuse();
    expect(again).toMatch(isId);
    expect(court.accuse()).toBe('VAL_PERM_018');
    for (const voter of [owner, admin]) expect(court.vote(again, 'approve', voter)).toEqual([]);
    expect(court.enact(again)).toEqual([]);
    const back = { validatorEntry: entryOf('validator-3', accused) };
    expect(court.decide(court.operation('add-validator', owner, back), owner, admin)).toEqual([]);
    expect(court.accuse()).toBe('VAL_PERM_019');
    const height = court.docketNumber;
    expect(court.accuse(twice({ height }, [{ fill: 'a' }, {}]))).toMatch(isId);
  });

  it('may be a liveness violation: ten slots missed, one proposal at a time', () => {
    const court = new Court();
    const missed: Evidence = { kind: 'missed-slots', dockets: [1, 5, 9, 13, 17, 21, 25, 29, 33, 37] };
    const action = 'control.validator.liveness-violation';
    const tell = (evidence: Evidence, by: Person) =>
      court.act(action, court.payload(court.suspend(by, evidence)), by);
    expect(tell(missed, witness)).toEqual([]);
    expect(tell(missed, keyOfValidator(1))).toEqual(['VAL_PERM_018']);
    expect(tell(proven, witness)).toEqual(['VAL_SCHEMA_001']);
    expect(court.accuse()).toMatch(isId);
    expect(court.rules.proposals).toHaveLength(2);
  });

  it('is built by a validator in the form that is judged', () => {
    const court = new Court();
    const accusation = { validatorId: 'validator-3', evidence: proven, proposerAddress: witness.address };
    const payload = buildSuspension(court.rules, accusation, court.context);
    const { envelope, txId, payloadText } = suspensionTransaction(registerId, payload, witness.key.publicKey);
    const { type, blueprintId, actionId, createdAt } = envelope;
    const transaction: ControlTransaction = {
      txId,
      type,
      blueprintId,
      actionId,
      createdAt,
      metadata: envelope.metadata ?? {},
      payload: JSON.parse(payloadText),
      senderAddress: witness.address,
      signers: [witness.key],
    };
    expect('violations' in court.seal(transaction)).toBe(false);
    expect(() =>
      buildSuspension(court.rules, { ...accusation, validatorId: 'validator-8' }, court.context),
    ).toThrow(expect.objectContaining({ code: 'VAL_PERM_017' }));
  });

  it('in any order of messages, each validator is proposed for suspension once and only for true conflicts', () => {
    const said = fc.record({
      liar: fc.integer({ min: 0, max: 3 }),
      signer: fc.integer({ min: 0, max: 3 }),
      by: fc.integer({ min: 0, max: 4 }),
      fills: fc.tuple(fc.constantFrom('a', 'b', undefined), fc.constantFrom('a', 'b', undefined)),
      height: fc.integer({ min: 0, max: 12 }),
      roundOff: fc.constantFrom(0, 0, 1),
    });
    fc.assert(
      fc.property(fc.array(said, { maxLength: 12 }), (all) => {
        const court = new Court();
        for (const { liar, signer, by, fills, height, roundOff } of all) {
          const pair = twice({ height }, [{ fill: fills[0] }, { fill: fills[1] }], [keyOfValidator(signer)]);
          const evidence = { ...pair, round: pair.round + roundOff };
          const proposer = by === 4 ? system : keyOfValidator(by);
          const validatorId = `validator-${liar}`;
          const operation = court.operation('suspend-validator', proposer, { validatorId, evidence });
          const isTrue =
            liar === signer && fills[0] !== fills[1] && roundOff === 0 && height <= court.docketNumber;
          const mayAsk = isTrue && by !== liar && !isSuspensionProposed(court.rules, validatorId);
          expect(isId.test(court.open(operation, proposer))).toBe(mayAsk);
        }
        const about = court.rules.proposals.map(({ operation }) =>
          operation.operationType === 'suspend-validator' ? operation.validatorId : '',
        );
        expect(new Set(about).size).toBe(about.length);
      }),
      { numRuns: 60 },
    );
  });
});

import { describe, expect, it } from 'vitest';
import { CONSENSUS_TYPES, type ConsensusMessage } from '#core/ledger/consensus.ts';
import type { Effect, VoteKind } from '../../chain/consensus/messages.ts';
import { EventQueue } from './event-queue.ts';
import { FaultModel } from './fault-model.ts';
import { Invariants } from './invariants.ts';
import { Trace } from './trace.ts';
import { ViolationRecorder } from './violations.ts';

const members = ['a', 'b', 'c', 'd'];

/** The invariants of one register with four constant members. */
class Judge extends Invariants {
  readonly faultModel: FaultModel;
  readonly violations: ViolationRecorder;

  constructor() {
    const faultModel = new FaultModel();
    const violations = new ViolationRecorder(new Trace(new EventQueue(0)));
    super({ registerId: 'r', faultModel, violations, membersAt: () => members });
    this.faultModel = faultModel;
    this.violations = violations;
  }
}

function create(): Judge {
  return new Judge();
}

function vote(invariants: Invariants, kind: VoteKind, round: number, votes: Record<string, string>): void {
  for (const [validatorId, value] of Object.entries(votes)) {
    invariants.voted(validatorId, { kind, height: 1, round, value });
  }
}

const all = (value: string, ids = members) => Object.fromEntries(ids.map((id) => [id, value]));

function decision(value: string, round: number, ids: readonly string[]): Extract<Effect, { kind: 'decide' }> {
  const docket = { hash: value, merkleRoot: '', logRoot: '' };
  const precommits = ids.map((validatorId) => ({
    kind: 'precommit' as const,
    height: 1,
    round,
    value: docket,
    timestamp: '',
    validatorId,
    signature: '',
  }));
  return { kind: 'decide', height: 1, round, value: { ...docket, timestamp: '' }, precommits };
}

function message(height: number, round: number, type: ConsensusMessage['type']): ConsensusMessage {
  const rest = { networkId: '', registerId: '', polRound: -1, validatorSetHash: '', timestamp: '' };
  return { height, round, type, docket: undefined, ...rest };
}

describe('the invariants', () => {
  it('hold for correct members', () => {
    const invariants = create();
    vote(invariants, 'prevote', 0, all('x'));
    vote(invariants, 'precommit', 0, { ...all('x', ['a', 'b']), c: '', d: '' });
    vote(invariants, 'prevote', 1, { ...all('x', ['a', 'b', 'c']), d: '' });
    vote(invariants, 'precommit', 1, all('x', ['a', 'b', 'c']));
    invariants.decided('a', decision('x', 1, ['a', 'b', 'c']));
    invariants.decided('d', decision('x', 1, ['a', 'b', 'c']));
    expect(invariants.violations.broken).toBeUndefined();
    expect(invariants.decidedHeight).toBe(0);
  });

  it('detect a vote against a lock, and allow one that a later quorum justifies', () => {
    for (const justified of [false, true]) {
      const invariants = create();
      vote(invariants, 'prevote', 0, all('x', ['a', 'b', 'c']));
      vote(invariants, 'precommit', 0, { a: 'x' });
      if (justified) vote(invariants, 'prevote', 1, all('y', ['b', 'c', 'd']));
      vote(invariants, 'prevote', 2, { a: 'y' });
      expect(invariants.violations.broken?.invariant).toBe(justified ? undefined : 'lock rule');
    }
  });

  it('detect a precommit without a prevote quorum of its round', () => {
    const invariants = create();
    vote(invariants, 'prevote', 0, all('x', ['a', 'b']));
    vote(invariants, 'prevote', 1, { c: 'x' });
    vote(invariants, 'precommit', 1, { a: 'x' });
    expect(invariants.violations.broken?.invariant).toBe('polka before precommit');
  });

  it('detect two possible certificates, counting members that may sign anything', () => {
    const invariants = create();
    invariants.faultModel.markFaulty('d', true);
    vote(invariants, 'prevote', 0, all('x', ['a', 'b']));
    vote(invariants, 'precommit', 0, { a: 'x', b: 'x' });
    vote(invariants, 'prevote', 1, { b: 'y', c: 'y' });
    expect(invariants.violations.broken?.invariant).toBe('lock rule');
    const quiet = create();
    quiet.faultModel.markFaulty('c', false);
    quiet.faultModel.markFaulty('d', true);
    vote(quiet, 'prevote', 0, all('x', ['a']));
    vote(quiet, 'precommit', 0, { a: 'x' });
    vote(quiet, 'prevote', 1, { b: 'y' });
    vote(quiet, 'precommit', 1, { b: 'y' });
    expect(quiet.violations.broken?.invariant).toBe('one certificate for each height');
  });

  it('detect differing decisions, and certificates without a proof', () => {
    const invariants = create();
    vote(invariants, 'prevote', 0, all('x'));
    vote(invariants, 'precommit', 0, all('x'));
    invariants.decided('a', decision('x', 0, ['a', 'b', 'c']));
    invariants.stored(1, 'y');
    expect(invariants.violations.broken?.invariant).toBe('agreement');
    const thin = create();
    vote(thin, 'prevote', 0, all('x'));
    vote(thin, 'precommit', 0, all('x', ['a', 'b']));
    thin.decided('a', decision('x', 0, ['a', 'b', 'c']));
    expect(thin.violations.broken?.invariant).toBe('certificate');
  });

  it('detect a signer that goes back or signs twice for one position', () => {
    const bytes = (text: string) => Buffer.from(text);
    const { prevote, precommit } = CONSENSUS_TYPES;
    const back = create();
    back.signed('a', message(1, 0, precommit), bytes('one'));
    back.signed('a', message(1, 0, precommit), bytes('one'));
    expect(back.violations.broken).toBeUndefined();
    back.signed('a', message(1, 0, prevote), bytes('two'));
    expect(back.violations.broken?.invariant).toBe('positions of a signer only rise');
    const twice = create();
    twice.signed('a', message(1, 0, prevote), bytes('one'));
    twice.signed('a', message(1, 0, prevote), bytes('two'));
    expect(twice.violations.broken?.invariant).toBe('positions of a signer only rise');
  });

  it('detect differing states, and evidence against correct members', () => {
    const states = create();
    states.reached('a', 1, 'one');
    states.reached('b', 1, 'one');
    expect(states.violations.broken).toBeUndefined();
    states.reached('c', 1, 'two');
    expect(states.violations.broken?.invariant).toBe('equal state at equal height');
    const accused = create();
    accused.accused('a', 'duplicate-vote', 'd');
    expect(accused.violations.broken?.invariant).toBe('evidence is true');
  });
});

import { describe, expect, it } from 'vitest';
import { proposerOf } from '#core/ledger/consensus.ts';
import { bft1 } from './bft1.ts';
import type { HeightRules } from './members.ts';
import type { Message, Value, Vote, VoteKind } from './messages.ts';
import { Tally } from './tally.ts';

const four = ['a', 'b', 'c', 'd'];
const timers = { proposeMs: 3000, voteMs: 1000, stepMs: 500 };
const value: Value = { hash: 'x', merkleRoot: 'm', logRoot: 'l', timestamp: 't' };

const rulesAt = (height: number): HeightRules => ({ height, self: 'a', members: four, quorum: 3, timers });

function proposal(height: number, round: number, of = value): Message {
  const validatorId = proposerOf(four, height, round);
  return { kind: 'proposal', height, round, polRound: -1, value: of, validatorId, signature: 's' };
}

function vote(kind: VoteKind, validatorId: string, height: number, of: Value | 'nil' = value): Vote {
  return {
    kind,
    height,
    round: 0,
    value: of === 'nil' ? undefined : of,
    timestamp: 't',
    validatorId,
    signature: 's',
  };
}

function begin() {
  let nowMs = 1_000;
  const tally = new Tally('a', () => nowMs);
  const consensus = tally.instrument(bft1());
  const machine = consensus.create(rulesAt(1));
  const give = (...messages: Message[]) => {
    for (const message of messages) consensus.advance(machine, { kind: 'message', message });
  };
  /** The proposal of round 0, judged valid. */
  const propose = (height: number) => {
    give(proposal(height, 0));
    consensus.advance(machine, { kind: 'judged', round: 0, hash: value.hash, verdict: 'valid' });
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { tally, consensus, machine, give, propose, pass };
}

describe('the counters of a member', () => {
  it('count a decision, its duration, and each message once', () => {
    const { tally, give, propose, pass } = begin();
    propose(1);
    give(proposal(1, 0));
    pass(40);
    for (const kind of ['prevote', 'precommit'] as const) {
      give(...four.slice(0, 3).map((id) => vote(kind, id, 1)), vote(kind, 'a', 1));
    }
    expect(tally.counts).toEqual({
      rounds: 1,
      roundsFailed: 0,
      proposalsMade: 0,
      proposalsReceived: 1,
      votesCast: 2,
      votesNil: 0,
      evidenceCount: 0,
      decided: 1,
      decidingMs: 40,
    });
  });

  it('count failed rounds as they fail, nil votes and evidence', () => {
    const { tally, consensus, machine, give } = begin();
    consensus.advance(machine, { kind: 'work' });
    consensus.advance(machine, { kind: 'timeout', height: 1, round: 0, step: 'propose' });
    give(vote('prevote', 'a', 1, 'nil'), vote('precommit', 'b', 1), vote('precommit', 'c', 1));
    give(vote('precommit', 'c', 1, { ...value, hash: 'y' }));
    give(vote('precommit', 'a', 1, 'nil'));
    consensus.advance(machine, { kind: 'timeout', height: 1, round: 0, step: 'precommit' });
    expect(tally.counts).toMatchObject({
      rounds: 1,
      roundsFailed: 1,
      votesCast: 2,
      votesNil: 2,
      evidenceCount: 1,
      decided: 0,
    });
  });

  it('count messages that arrived before their height began', () => {
    const { tally, consensus, machine, give } = begin();
    give(proposal(2, 0), vote('prevote', 'b', 2));
    expect(tally.counts.proposalsReceived).toBe(0);
    consensus.begin(machine, rulesAt(2));
    expect(tally.counts.proposalsReceived).toBe(1);
  });

  it('restart the duration with each height, and stop it while idle', () => {
    const { tally, consensus, machine, give, propose, pass } = begin();
    pass(10_000);
    for (const kind of ['prevote', 'precommit'] as const) give(...four.map((id) => vote(kind, id, 1)));
    propose(1);
    pass(10_000);
    consensus.begin(machine, rulesAt(2));
    pass(10_000);
    propose(2);
    pass(7);
    for (const kind of ['prevote', 'precommit'] as const) give(...four.map((id) => vote(kind, id, 2)));
    expect(tally.counts).toMatchObject({ decided: 2, decidingMs: 7 });
  });
});

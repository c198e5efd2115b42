import { describe, expect, it } from 'vitest';
import { faultTolerance, proposerOf } from '#core/ledger/consensus.ts';
import { advance, beginHeight, createMachine, resume } from './machine.ts';
import type { Machine } from './machine-state.ts';
import type { HeightRules } from './members.ts';
import type { Effect, Message, Value, Vote } from './messages.ts';

const timers = { proposeMs: 3000, voteMs: 1000, stepMs: 500 };
const value = (name: string): Value => ({
  hash: name,
  merkleRoot: `m-${name}`,
  logRoot: `l-${name}`,
  timestamp: `t-${name}`,
});

function rules(self: string, members: string[], height = 1): HeightRules {
  return { height, self, members, quorum: Math.floor((2 * members.length) / 3) + 1, timers };
}

const four = ['a', 'b', 'c', 'd'];

/** The message that a member would send for a sign effect. */
function signed(machine: Machine, effect: Effect): Message {
  if (effect.kind !== 'sign') throw new Error(`not a message: ${effect.kind}`);
  const from = { validatorId: machine.rules.self, signature: 's' };
  return effect.message.kind === 'proposal'
    ? { ...effect.message, ...from }
    : { ...effect.message, timestamp: effect.message.timestamp ?? 'now', ...from };
}

function proposal(round: number, of: Value, polRound = -1, height = 1): Message {
  return {
    kind: 'proposal',
    height,
    round,
    polRound,
    value: of,
    validatorId: proposerOf(four, height, round),
    signature: 's',
  };
}

function vote(kind: Vote['kind'], validatorId: string, round: number, of: Value | undefined): Vote {
  return { kind, height: 1, round, value: of, timestamp: 't', validatorId, signature: 's' };
}

const kinds = (effects: Effect[]) => effects.map((effect) => effect.kind);
const signs = (effects: Effect[]) =>
  effects.flatMap((effect) => (effect.kind === 'sign' ? [effect.message] : []));

function give(machine: Machine, ...messages: Message[]): Effect[] {
  return messages.flatMap((message) => advance(machine, { kind: 'message', message }));
}

function judged(
  machine: Machine,
  round: number,
  of: Value,
  verdict: 'valid' | 'late' | 'invalid' | 'unavailable',
) {
  return advance(machine, { kind: 'judged', round, hash: of.hash, verdict });
}

describe('one member', () => {
  it('goes through proposal, prevote, precommit and decision, each a message of its own', () => {
    const machine = createMachine(rules('a', ['a'], 0));
    const started = advance(machine, { kind: 'work' });
    expect(kinds(started)).toEqual(['schedule', 'build']);
    const [propose] = advance(machine, { kind: 'built', round: 0, value: value('x') });
    if (propose === undefined) throw new Error('no proposal');
    expect(kinds(give(machine, signed(machine, propose)))).toEqual(['judge']);
    const [prevote] = judged(machine, 0, value('x'), 'valid');
    if (prevote === undefined) throw new Error('no prevote');
    const afterPrevote = give(machine, signed(machine, prevote));
    expect(machine.locked).toEqual({ round: 0, value: value('x') });
    const [precommit] = afterPrevote;
    if (precommit === undefined) throw new Error('no precommit');
    const decided = give(machine, signed(machine, precommit));
    expect(decided[0]).toMatchObject({ kind: 'decide', height: 0, round: 0, value: value('x') });
    expect(advance(machine, { kind: 'work' })).toEqual([]);
    beginHeight(machine, rules('a', ['a'], 1));
    expect(machine).toMatchObject({ step: 'idle', locked: undefined, valid: undefined, round: 0 });
  });

  it('returns to idle when there is nothing to build and nothing was received', () => {
    const machine = createMachine(rules('a', ['a']));
    advance(machine, { kind: 'work' });
    expect(advance(machine, { kind: 'built', round: 0, value: undefined })).toEqual([]);
    expect(machine.step).toBe('idle');
  });

  it('reaches the next round through nil votes when the signer refused its proposal', () => {
    const machine = createMachine(rules('a', ['a']));
    advance(machine, { kind: 'work' });
    advance(machine, { kind: 'built', round: 0, value: value('x') });
    expect(advance(machine, { kind: 'refused', round: 0, message: 'proposal' })).toEqual([]);
    let effects = advance(machine, { kind: 'timeout', height: 1, round: 0, step: 'propose' });
    expect(signs(effects)).toMatchObject([{ kind: 'prevote', value: undefined }]);
    effects = effects.slice(0, 1).flatMap((effect) => give(machine, signed(machine, effect)));
    expect(signs(effects)).toMatchObject([{ kind: 'precommit', value: undefined }]);
    const last = effects.find((effect) => effect.kind === 'sign');
    if (last === undefined) throw new Error('no precommit');
    expect(kinds(give(machine, signed(machine, last)))).toEqual(['schedule']);
    const next = advance(machine, { kind: 'timeout', height: 1, round: 0, step: 'precommit' });
    expect(kinds(next)).toEqual(['schedule', 'build']);
    expect(machine.round).toBe(1);
  });

  it('advances by timers when a vote was refused', () => {
    const machine = createMachine(rules('a', ['a']));
    advance(machine, { kind: 'work' });
    const [propose] = advance(machine, { kind: 'built', round: 0, value: value('x') });
    if (propose === undefined) throw new Error('no proposal');
    give(machine, signed(machine, propose));
    judged(machine, 0, value('x'), 'valid');
    expect(kinds(advance(machine, { kind: 'refused', round: 0, message: 'prevote' }))).toEqual(['schedule']);
    const effects = advance(machine, { kind: 'timeout', height: 1, round: 0, step: 'prevote' });
    expect(signs(effects)).toMatchObject([{ kind: 'precommit', value: undefined }]);
    expect(kinds(advance(machine, { kind: 'refused', round: 0, message: 'precommit' }))).toEqual([
      'schedule',
    ]);
    advance(machine, { kind: 'timeout', height: 1, round: 0, step: 'precommit' });
    expect(machine.round).toBe(1);
  });

  it('resumes after a restart with the messages of its log', () => {
    const machine = createMachine(rules('a', ['a']));
    const held = { round: 2, value: value('x') };
    expect(kinds(resume(machine, { round: 2, step: 'precommit', locked: held, valid: held }))).toEqual([
      'schedule',
    ]);
    const own = { validatorId: 'a', signature: 's' };
    give(machine, { kind: 'proposal', height: 1, round: 2, polRound: -1, value: value('x'), ...own });
    judged(machine, 2, value('x'), 'late');
    give(machine, vote('prevote', 'a', 2, value('x')));
    const effects = give(machine, vote('precommit', 'a', 2, value('x')));
    expect(kinds(effects)).toContain('decide');
  });
});

describe('four members', () => {
  it('rotates proposers by height and round', () => {
    expect([0, 1, 2, 3, 4].map((round) => proposerOf(four, 1, round))).toEqual(['b', 'c', 'd', 'a', 'b']);
    expect([1, 2, 3, 4, 7, 10].map(faultTolerance)).toEqual([0, 0, 0, 1, 2, 3]);
  });

  it('prevote nil for invalid and unavailable proposals, and for late ones without a lock quorum', () => {
    for (const verdict of ['invalid', 'late', 'unavailable'] as const) {
      const machine = createMachine(rules('a', four));
      give(machine, proposal(0, value('x')));
      expect(signs(judged(machine, 0, value('x'), verdict))).toMatchObject([
        { kind: 'prevote', value: undefined },
      ]);
    }
  });

  it('judge an unavailable proposal again once a quorum votes for it', () => {
    const machine = createMachine(rules('a', four));
    give(machine, proposal(0, value('x')));
    judged(machine, 0, value('x'), 'unavailable');
    const effects = give(machine, ...['b', 'c', 'd'].map((id) => vote('precommit', id, 0, value('x'))));
    expect(kinds(effects)).toContain('judge');
    expect(kinds(judged(machine, 0, value('x'), 'valid'))).toContain('decide');
  });

  it('ignore proposals of non-proposers, messages of non-members and old heights', () => {
    const machine = createMachine(rules('a', four));
    expect(give(machine, { ...proposal(0, value('x')), validatorId: 'c' } as Message)).toHaveLength(1);
    expect(machine.rounds.get(0)?.proposal).toBeUndefined();
    expect(
      give(machine, vote('prevote', 'z', 0, value('x')), {
        ...vote('prevote', 'b', 0, value('x')),
        height: 0,
      }),
    ).toEqual([]);
  });

  it('lock on a prevote quorum, keep the lock against other values and release it for a later quorum', () => {
    const machine = createMachine(rules('a', four));
    give(machine, proposal(0, value('x')));
    judged(machine, 0, value('x'), 'valid');
    const locked = give(machine, ...['a', 'b', 'c'].map((id) => vote('prevote', id, 0, value('x'))));
    expect(signs(locked)).toMatchObject([{ kind: 'precommit', value: { hash: 'x' } }]);
    expect(machine.locked?.value.hash).toBe('x');

    give(machine, ...['b', 'c', 'd'].map((id) => vote('precommit', id, 0, undefined)));
    advance(machine, { kind: 'timeout', height: 1, round: 0, step: 'precommit' });
    give(machine, proposal(1, value('y')));
    expect(signs(judged(machine, 1, value('y'), 'valid'))).toMatchObject([
      { kind: 'prevote', value: undefined },
    ]);

    give(machine, ...['b', 'c', 'd'].map((id) => vote('prevote', id, 1, value('y'))));
    expect(machine.locked?.value.hash).toBe('y');
    expect(machine.valid).toEqual({ round: 1, value: value('y') });
  });

  it('prevote a re-proposed value only with the prevote quorum of its round', () => {
    const machine = createMachine(rules('a', four));
    give(machine, proposal(0, value('x')));
    judged(machine, 0, value('x'), 'valid');
    give(machine, ...['a', 'b', 'c'].map((id) => vote('prevote', id, 0, value('x'))));
    give(machine, ...['b', 'c'].map((id) => vote('precommit', id, 2, undefined)));
    expect(machine.round).toBe(2);
    give(machine, proposal(2, value('y'), 1));
    expect(signs(judged(machine, 2, value('y'), 'late'))).toEqual([]);
    const effects = give(machine, ...['b', 'c', 'd'].map((id) => vote('prevote', id, 1, value('y'))));
    expect(signs(effects)).toMatchObject([{ kind: 'prevote', round: 2, value: { hash: 'y' } }]);
  });

  it('propose the valid value again with the round that made it valid', () => {
    const machine = createMachine(rules('c', four));
    give(machine, proposal(0, value('x')));
    judged(machine, 0, value('x'), 'valid');
    give(machine, ...['a', 'b', 'c'].map((id) => vote('prevote', id, 0, value('x'))));
    give(machine, ...['a', 'b', 'd'].map((id) => vote('precommit', id, 0, undefined)));
    const effects = advance(machine, { kind: 'timeout', height: 1, round: 0, step: 'precommit' });
    expect(signs(effects)).toMatchObject([{ kind: 'proposal', round: 1, polRound: 0, value: value('x') }]);
  });

  it('skip to a higher round on f+1 members there', () => {
    const machine = createMachine(rules('a', four));
    give(machine, vote('prevote', 'b', 5, undefined));
    expect(machine.round).toBe(0);
    give(machine, vote('precommit', 'c', 5, undefined));
    expect(machine.round).toBe(5);
  });

  it('do not add up votes of two rounds, of one member twice, or for other roots', () => {
    const machine = createMachine(rules('a', four));
    give(machine, proposal(0, value('x')));
    judged(machine, 0, value('x'), 'valid');
    const swapped = { ...value('x'), merkleRoot: 'other' };
    const effects = give(
      machine,
      vote('precommit', 'b', 0, value('x')),
      vote('precommit', 'b', 0, value('x')),
      vote('precommit', 'c', 1, value('x')),
      vote('precommit', 'd', 0, swapped),
    );
    expect(kinds(effects)).not.toContain('decide');
  });

  it('report two different messages of one member as evidence and keep the first', () => {
    const machine = createMachine(rules('a', four));
    give(machine, proposal(0, value('x')), vote('prevote', 'c', 0, value('x')));
    const effects = give(machine, proposal(0, value('y')), vote('prevote', 'c', 0, undefined));
    expect(effects.flatMap((effect) => (effect.kind === 'evidence' ? [effect.evidence.kind] : []))).toEqual([
      'duplicate-proposal',
      'duplicate-vote',
    ]);
    expect(machine.rounds.get(0)?.proposal?.value.hash).toBe('x');
  });

  it('count both votes of an equivocating member, because others may have received only one of them', () => {
    const machine = createMachine(rules('a', four));
    give(machine, proposal(0, value('x')));
    judged(machine, 0, value('x'), 'valid');
    give(machine, vote('prevote', 'd', 0, undefined), vote('prevote', 'd', 0, value('z')));
    give(machine, ...['a', 'b'].map((id) => vote('prevote', id, 0, value('x'))));
    expect(machine.locked).toBeUndefined();
    give(machine, vote('prevote', 'd', 0, value('x')), vote('prevote', 'd', 0, value('x')));
    expect(machine.locked).toEqual({ round: 0, value: value('x') });
    give(machine, vote('precommit', 'd', 0, undefined), vote('precommit', 'd', 0, value('x')));
    give(machine, vote('precommit', 'd', 0, value('x')), vote('precommit', 'b', 0, value('x')));
    expect(machine.step).not.toBe('decided');
    const effects = give(machine, vote('precommit', 'c', 0, value('x')));
    const decision = effects.find((effect) => effect.kind === 'decide');
    const voters = decision?.kind === 'decide' ? decision.precommits.map((each) => each.validatorId) : [];
    expect(voters).toEqual(['b', 'c', 'd']);
  });

  it('do not wait for a vote of a member that has moved on, since it may be unable to repeat it', () => {
    const machine = createMachine(rules('a', four));
    give(machine, proposal(0, value('x')));
    judged(machine, 0, value('x'), 'valid');
    give(machine, vote('prevote', 'a', 0, value('x')), vote('prevote', 'b', 0, value('x')));
    const [timer] = give(machine, vote('precommit', 'c', 0, undefined));
    expect(timer).toMatchObject({ kind: 'schedule', round: 0, step: 'prevote' });
    advance(machine, { kind: 'timeout', height: 1, round: 0, step: 'prevote' });
    give(machine, vote('precommit', 'a', 0, undefined));
    const [next] = give(machine, vote('prevote', 'd', 1, undefined));
    expect(next).toMatchObject({ kind: 'schedule', round: 0, step: 'precommit' });
    advance(machine, { kind: 'timeout', height: 1, round: 0, step: 'precommit' });
    expect(machine.round).toBe(1);
  });

  it('decide in a round that they have left', () => {
    const machine = createMachine(rules('a', four));
    give(machine, proposal(0, value('x')));
    judged(machine, 0, value('x'), 'valid');
    give(machine, ...['b', 'c'].map((id) => vote('prevote', id, 3, undefined)));
    expect(machine.round).toBe(3);
    const effects = give(machine, ...['b', 'c', 'd'].map((id) => vote('precommit', id, 0, value('x'))));
    expect(effects.at(-1)).toMatchObject({ kind: 'decide', round: 0 });
  });

  it('request a commit for a value that was never proposed to them, and accept it', () => {
    const machine = createMachine(rules('a', four));
    give(machine, proposal(0, value('x')));
    judged(machine, 0, value('x'), 'valid');
    const precommits = ['b', 'c', 'd'].map((id) => vote('precommit', id, 0, value('y')));
    expect(give(machine, ...precommits).filter((effect) => effect.kind === 'behind')).toEqual([
      { kind: 'behind', height: 1, validatorId: 'b' },
    ]);
    const commit = { height: 1, round: 0, value: value('y'), precommits };
    expect(advance(machine, { kind: 'committed', ...commit })).toEqual([{ kind: 'decide', ...commit }]);
    expect(machine.step).toBe('decided');
  });

  it('keep messages of the next height and report being behind', () => {
    const machine = createMachine(rules('a', four));
    const effects = give(
      machine,
      { ...vote('prevote', 'b', 0, value('n')), height: 2 },
      { ...vote('prevote', 'b', 0, value('n')), height: 9 },
    );
    expect(effects).toMatchObject([
      { kind: 'behind', height: 2 },
      { kind: 'behind', height: 9 },
    ]);
    beginHeight(machine, rules('a', four, 2));
    expect(machine.rounds.get(0)?.prevotes.size).toBe(1);
  });
});

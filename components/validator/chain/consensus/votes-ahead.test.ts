import { describe, expect, test } from 'vitest';
import { bft1 } from './bft1.ts';
import type { Machine } from './machine-state.ts';
import type { Effect, Message, UnsignedMessage, UnsignedProposal, Value } from './messages.ts';

const value: Value = {
  hash: 'a',
  merkleRoot: 'b',
  logRoot: 'c',
  timestamp: '2026-11-21T12:00:00.0000000+00:00',
};
const consensus = bft1();

function start(size: number, self = 'v0'): Machine {
  const members = Array.from({ length: size }, (_, index) => `v${index}`);
  const timers = { proposeMs: 1000, voteMs: 1000, stepMs: 100 };
  const quorum = Math.floor((2 * size) / 3) + 1;
  return consensus.create({ height: 0, self, members, quorum, timers });
}

const toSign = (effects: readonly Effect[]) =>
  effects.flatMap((effect): UnsignedMessage[] => (effect.kind === 'sign' ? [effect.message] : []));

function propose(machine: Machine): UnsignedProposal {
  consensus.advance(machine, { kind: 'work' });
  const [proposal] = toSign(consensus.advance(machine, { kind: 'built', round: machine.round, value }));
  if (proposal?.kind !== 'proposal') throw new Error('nothing is proposed');
  return proposal;
}

/** Everything that the machine asks for until it needs another member, once its proposal is signed and valid. */
function votesOf(machine: Machine, proposal: UnsignedProposal): UnsignedMessage[] {
  const { self } = machine.rules;
  const votes: UnsignedMessage[] = [];
  const signed: UnsignedMessage[] = [proposal];
  for (let next = signed.shift(); next !== undefined; next = signed.shift()) {
    const message = { ...next, validatorId: self, signature: 's', timestamp: value.timestamp } as Message;
    const asked = toSign(consensus.advance(machine, { kind: 'message', message }));
    const { round } = proposal;
    const judged = { kind: 'judged', round, hash: value.hash, verdict: 'valid' } as const;
    if (next.kind === 'proposal') asked.push(...toSign(consensus.advance(machine, judged)));
    votes.push(...asked);
    signed.push(...asked);
  }
  return votes;
}

describe('the votes that follow an own proposal', () => {
  test.each([
    [1, ['prevote', 'precommit']],
    [2, ['prevote']],
    [4, ['prevote']],
    [7, ['prevote']],
  ])('in a set of %i are those that the machine asks for', (size, kinds) => {
    const machine = start(size);
    const proposal = propose(machine);
    const ahead = consensus.votesAhead(machine, proposal);
    expect(ahead.map(({ kind }) => kind)).toEqual(kinds);
    expect(ahead).toEqual(votesOf(machine, proposal));
  });

  test('are unknown for a value that is proposed again, under a lock, and in another round', () => {
    const held = { round: 0, value };
    const cases: ((machine: Machine, proposal: UnsignedProposal) => UnsignedProposal)[] = [
      (_, proposal) => ({ ...proposal, polRound: 0 }),
      (machine, proposal) => {
        machine.locked = held;
        return proposal;
      },
      (machine, proposal) => {
        machine.valid = held;
        return proposal;
      },
      (machine, proposal) => {
        machine.round = 1;
        return proposal;
      },
      (machine, proposal) => {
        machine.step = 'prevote';
        return proposal;
      },
    ];
    for (const change of cases) {
      const machine = start(1);
      expect(consensus.votesAhead(machine, change(machine, propose(machine)))).toEqual([]);
    }
  });
});

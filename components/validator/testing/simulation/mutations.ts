import { bft1, type Consensus } from '../../chain/consensus/bft1.ts';
import type { HeightRules } from '../../chain/consensus/members.ts';
import type { Weakness } from './world.ts';

/**
 * Validators with one protection removed. The simulator must find each of them; otherwise a run without findings proves
 * nothing.
 */
export const mutations = {
  'without the lock rule': () => ({ consensus: withoutLocks(bft1()) }),
  'without the force of the log to disk': () => ({ disk: 'forgets' }),
  'with a quorum that is too small': () => ({ consensus: withSmallQuorum(bft1()) }),
  'without the round of a vote': () => ({ consensus: withoutRounds(bft1()) }),
  'without the guard against signing twice': () => ({ signer: 'unguarded' }),
  'that trusts incomplete keys': () => ({ keys: 'ungated' }),
  'with a guard that forgets the bytes of a batch': () => ({ signer: 'confused' }),
  'with a precommit that is signed before the prevotes of others': () => ({
    consensus: withPrecommitsAhead(bft1()),
  }),
} as const satisfies Readonly<Record<string, () => Weakness>>;

/** Forgets its lock at once. */
function withoutLocks(consensus: Consensus): Consensus {
  return {
    ...consensus,
    advance(machine, input) {
      machine.locked = undefined;
      return consensus.advance(machine, input);
    },
  };
}

/** Accepts half of the members as a quorum. */
function withSmallQuorum(consensus: Consensus): Consensus {
  const lowered = (rules: HeightRules) => ({
    ...rules,
    quorum: Math.max(1, Math.ceil(rules.members.length / 2)),
  });
  return {
    ...consensus,
    create: (rules) => consensus.create(lowered(rules)),
    begin: (machine, rules) => consensus.begin(machine, lowered(rules)),
  };
}

/** Counts a vote of any round in the current round. */
function withoutRounds(consensus: Consensus): Consensus {
  return {
    ...consensus,
    advance(machine, input) {
      if (input.kind !== 'message' || input.message.kind === 'proposal')
        return consensus.advance(machine, input);
      return consensus.advance(machine, { ...input, message: { ...input.message, round: machine.round } });
    },
  };
}

/** Signs the precommit together with the proposal in every set, not only in a set of one. */
function withPrecommitsAhead(consensus: Consensus): Consensus {
  return {
    ...consensus,
    votesAhead: (machine, proposal) =>
      consensus
        .votesAhead(machine, proposal)
        .slice(0, 1)
        .flatMap((vote) => [vote, { ...vote, kind: 'precommit' }]),
  };
}

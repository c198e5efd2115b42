import { type Machine, voteFor } from './machine-state.ts';
import type { HeightRules } from './members.ts';
import type { UnsignedProposal, UnsignedVote } from './messages.ts';

/**
 * The votes that this member casts for its own new proposal once that is signed and judged valid: the prevote, and in a
 * set of one the precommit, since its prevote is the quorum. Empty when they are not certain. A larger set needs the
 * prevotes of other members before a precommit, so none is signed in advance.
 */
export function votesAhead(machine: Readonly<Machine>, proposal: UnsignedProposal): UnsignedVote[] {
  const { rules, round, step, locked, valid } = machine;
  const isCurrent = step === 'propose' && proposal.height === rules.height && proposal.round === round;
  const isNew = proposal.polRound === -1 && locked === undefined && valid === undefined;
  if (!isCurrent || !isNew) return [];
  const prevote = voteFor(machine, 'prevote', proposal.value);
  return isAlone(rules) ? [prevote, voteFor(machine, 'precommit', proposal.value)] : [prevote];
}

function isAlone({ members, self, quorum }: HeightRules): boolean {
  return members.length === 1 && members[0] === self && quorum === 1;
}

import type { Message, Proposal, Value, Verdict, Vote, VoteKind } from './messages.ts';

export type VotedValue = Omit<Value, 'timestamp'>;

/** Everything heard of one round of one height. */
export interface Round {
  proposal: Proposal | undefined;
  verdict: Verdict | 'pending' | undefined;
  readonly prevotes: Map<string, Vote>;
  readonly precommits: Map<string, Vote>;
  prevoteTimer: boolean;
  precommitTimer: boolean;
  /** The prevote quorum for the proposal was acted upon. */
  polkaSeen: boolean;
  /** A commit for something other than the proposal was noticed and asked for. */
  commitAsked: boolean;
}

export function newRound(): Round {
  return {
    proposal: undefined,
    verdict: undefined,
    prevotes: new Map(),
    precommits: new Map(),
    prevoteTimer: false,
    precommitTimer: false,
    polkaSeen: false,
    commitAsked: false,
  };
}

export function votesOf(round: Round, kind: VoteKind): Map<string, Vote> {
  return kind === 'prevote' ? round.prevotes : round.precommits;
}

export function countFor(votes: ReadonlyMap<string, Vote>, value: VotedValue | undefined): number {
  let count = 0;
  for (const vote of votes.values()) if (isSameValue(vote.value, value)) count += 1;
  return count;
}

/** The docket hash covers only transaction ids, so two values are one only when both roots agree too (W-01). */
export function isSameValue(a: VotedValue | undefined, b: VotedValue | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.hash === b.hash && a.merkleRoot === b.merkleRoot && a.logRoot === b.logRoot;
}

/** Members heard in a round, in any message. */
export function speakers(round: Round): Set<string> {
  const heard = new Set([...round.prevotes.keys(), ...round.precommits.keys()]);
  if (round.proposal !== undefined) heard.add(round.proposal.validatorId);
  return heard;
}

export function isProposal(message: Message): message is Proposal {
  return message.kind === 'proposal';
}

/** Same sender, height, round and kind is given: do the two say the same? */
export function agrees(a: Message, b: Message): boolean {
  if (isProposal(a) || isProposal(b)) {
    return isProposal(a) && isProposal(b) && isSameValue(a.value, b.value) && a.polRound === b.polRound;
  }
  return isSameValue(a.value, b.value);
}

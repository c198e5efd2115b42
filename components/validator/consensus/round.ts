import type { Message, Proposal, Value, Verdict, Vote, VoteKind } from './messages.ts';

export type VotedValue = Omit<Value, 'timestamp'>;

/** Everything heard of one round of one height. */
export interface Round {
  proposal: Proposal | undefined;
  verdict: Verdict | 'pending' | undefined;
  readonly prevotes: Map<string, Vote>;
  readonly precommits: Map<string, Vote>;
  /**
   * Votes of members that voted more than once, beside their first: each counts for what it names. Others may have heard
   * them the other way round, and a quorum that they saw must be one here too.
   */
  readonly further: Vote[];
  prevoteTimer: boolean;
  precommitTimer: boolean;
  /** The prevote quorum for the proposal was acted upon. */
  polkaSeen: boolean;
  /** A commit for something other than the proposal was noticed and asked for. */
  commitAsked: boolean;
  /** This member is the proposer and had nothing to propose so far. */
  nothingBuilt: boolean;
}

export function newRound(): Round {
  return {
    proposal: undefined,
    verdict: undefined,
    prevotes: new Map(),
    precommits: new Map(),
    further: [],
    prevoteTimer: false,
    precommitTimer: false,
    polkaSeen: false,
    commitAsked: false,
    nothingBuilt: false,
  };
}

export function votesOf(round: Round, kind: VoteKind): Map<string, Vote> {
  return kind === 'prevote' ? round.prevotes : round.precommits;
}

export function countFor(round: Round, kind: VoteKind, value: VotedValue | undefined): number {
  let count = 0;
  for (const vote of votesOf(round, kind).values()) if (isSameValue(vote.value, value)) count += 1;
  for (const vote of round.further) if (vote.kind === kind && isSameValue(vote.value, value)) count += 1;
  return count;
}

/** The votes that `countFor` counts, one of each member. */
export function votesFor(round: Round, kind: VoteKind, value: VotedValue): Vote[] {
  const further = round.further.filter((vote) => vote.kind === kind);
  return [...votesOf(round, kind).values(), ...further].filter((vote) => isSameValue(vote.value, value));
}

/** Keeps a second vote of a member where it may matter: for a docket that somebody else votes for, or that is proposed. */
export function keepFurther(round: Round, vote: Vote): void {
  const { kind, validatorId, value } = vote;
  if (value === undefined) return;
  const isKnown = round.further.some(
    (each) => each.kind === kind && each.validatorId === validatorId && isSameValue(each.value, value),
  );
  const firsts = [...round.prevotes.values(), ...round.precommits.values()];
  const isWanted =
    isSameValue(round.proposal?.value, value) ||
    firsts.some((first) => first.validatorId !== validatorId && isSameValue(first.value, value));
  if (isWanted && !isKnown) round.further.push(vote);
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

/**
 * Members that have voted in a step of a round, or are further: a vote that was lost with its member's crash may never be
 * given again, because something else was signed in its place, and nobody may wait for it.
 */
export function countPassed(rounds: ReadonlyMap<number, Round>, at: number, kind: VoteKind): number {
  const round = rounds.get(at);
  if (round === undefined) return 0;
  const isLast = kind === 'precommit' || round.precommits.size === 0;
  if (isLast && rounds.size === 1) return votesOf(round, kind).size;
  const passed = new Set([...votesOf(round, kind).keys(), ...round.precommits.keys()]);
  for (const [number, later] of rounds) {
    if (number > at) for (const validatorId of speakers(later)) passed.add(validatorId);
  }
  return passed.size;
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

import type { Message, Proposal, Value, Verdict, Vote, VoteKind } from './messages.ts';

type VotedValue = Omit<Value, 'timestamp'>;

/** All messages of one round of one height. */
export interface Round {
  proposal: Proposal | undefined;
  verdict: Verdict | 'pending' | undefined;
  readonly prevotes: Map<string, Vote>;
  readonly precommits: Map<string, Vote>;
  /**
   * Further votes of members that voted more than once. Each counts for its own value: other members may have received them
   * in another order, and a quorum that they saw must be one here too.
   */
  readonly conflicting: Vote[];
  prevoteTimer: boolean;
  precommitTimer: boolean;
  /** The prevote quorum for the proposal has been acted upon. */
  polkaSeen: boolean;
  /** A commit for a value other than the proposal was noticed and requested. */
  commitRequested: boolean;
  /** This member is the proposer and has had nothing to propose so far. */
  nothingBuilt: boolean;
}

export function newRound(): Round {
  return {
    proposal: undefined,
    verdict: undefined,
    prevotes: new Map(),
    precommits: new Map(),
    conflicting: [],
    prevoteTimer: false,
    precommitTimer: false,
    polkaSeen: false,
    commitRequested: false,
    nothingBuilt: false,
  };
}

export function votesOf(round: Round, kind: VoteKind): Map<string, Vote> {
  return kind === 'prevote' ? round.prevotes : round.precommits;
}

export function countFor(round: Round, kind: VoteKind, value: VotedValue | undefined): number {
  let count = 0;
  for (const vote of votesOf(round, kind).values()) if (isSameValue(vote.value, value)) count += 1;
  for (const vote of round.conflicting) if (vote.kind === kind && isSameValue(vote.value, value)) count += 1;
  return count;
}

/** The votes that `countFor` counts, one per member. */
export function votesFor(round: Round, kind: VoteKind, value: VotedValue): Vote[] {
  const conflicting = round.conflicting.filter((vote) => vote.kind === kind);
  return [...votesOf(round, kind).values(), ...conflicting].filter((vote) => isSameValue(vote.value, value));
}

/** Keeps a conflicting vote where it can matter: for a docket that is proposed or that another member votes for. */
export function keepConflicting(round: Round, vote: Vote): void {
  const { kind, validatorId, value } = vote;
  if (value === undefined) return;
  const isKnown = round.conflicting.some(
    (each) => each.kind === kind && each.validatorId === validatorId && isSameValue(each.value, value),
  );
  const firsts = [...round.prevotes.values(), ...round.precommits.values()];
  const isCounted =
    isSameValue(round.proposal?.value, value) ||
    firsts.some((first) => first.validatorId !== validatorId && isSameValue(first.value, value));
  if (isCounted && !isKnown) round.conflicting.push(vote);
}

/** The docket hash covers only transaction ids, so two values are the same only when both roots are equal too. */
export function isSameValue(a: VotedValue | undefined, b: VotedValue | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.hash === b.hash && a.merkleRoot === b.merkleRoot && a.logRoot === b.logRoot;
}

/** Members of whom any message of the round was received. */
export function senders(round: Round): Set<string> {
  const heard = new Set([...round.prevotes.keys(), ...round.precommits.keys()]);
  if (round.proposal !== undefined) heard.add(round.proposal.validatorId);
  return heard;
}

/**
 * Members that have voted in a step of a round or have moved past it. A member that crashed may never repeat its vote,
 * since it signed another message instead, so a later message counts as having passed.
 */
export function countPassed(rounds: ReadonlyMap<number, Round>, at: number, kind: VoteKind): number {
  const round = rounds.get(at);
  if (round === undefined) return 0;
  const isLast = kind === 'precommit' || round.precommits.size === 0;
  if (isLast && rounds.size === 1) return votesOf(round, kind).size;
  const passed = new Set([...votesOf(round, kind).keys(), ...round.precommits.keys()]);
  for (const [number, later] of rounds) {
    if (number > at) for (const validatorId of senders(later)) passed.add(validatorId);
  }
  return passed.size;
}

export function isProposal(message: Message): message is Proposal {
  return message.kind === 'proposal';
}

/** Whether two messages of the same sender, height, round and kind have the same content. */
export function agrees(a: Message, b: Message): boolean {
  if (isProposal(a) || isProposal(b)) {
    return isProposal(a) && isProposal(b) && isSameValue(a.value, b.value) && a.polRound === b.polRound;
  }
  return isSameValue(a.value, b.value);
}

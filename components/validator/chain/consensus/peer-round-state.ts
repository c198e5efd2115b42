import type { Machine } from './machine-state.ts';
import type { Message, Proposal, Vote } from './messages.ts';
import { newRound, type Round } from './round.ts';

/** The round state of one member at its current height, small enough to be sent often. */
export interface PeerRoundState {
  readonly height: number;
  readonly round: number;
  readonly step: Machine['step'];
  /** -1 for none. */
  readonly lockedRound: number;
  readonly validRound: number;
  readonly hasProposal: boolean;
  /** Members whose vote in `round` was received, as indexes into the sorted set. */
  readonly prevotes: readonly number[];
  readonly precommits: readonly number[];
}

/** The round state of a machine. */
export function roundStateOf(machine: Readonly<Machine>): PeerRoundState {
  const { rules, round, step, locked, valid } = machine;
  const current = machine.rounds.get(round) ?? newRound();
  const places = (votes: ReadonlyMap<string, Vote>) =>
    rules.members.flatMap((member, place) => (votes.has(member) ? place : []));
  return {
    height: rules.height,
    round,
    step,
    lockedRound: locked?.round ?? -1,
    validRound: valid?.round ?? -1,
    hasProposal: current.proposal !== undefined,
    prevotes: places(current.prevotes),
    precommits: places(current.precommits),
  };
}

/**
 * The messages that another member of the same height lacks and this one has: those of this member's round when that is
 * later or equal, the polka of its valid value, and the precommits of rounds that the other has left.
 */
export function missingMessages(machine: Readonly<Machine>, other: PeerRoundState): Message[] {
  if (other.height !== machine.rules.height) return [];
  const found = new Set<Message>();
  const add = (messages: Iterable<Message>) => {
    for (const message of messages) found.add(message);
  };
  const round = machine.rounds.get(machine.round);
  if (round !== undefined && machine.round > other.round) add(allMessages(round));
  const theirs = machine.rounds.get(other.round);
  if (theirs !== undefined) add(missingFrom(machine, theirs, other));
  const { valid } = machine;
  if (valid !== undefined && valid.round > other.validRound) add(polkaOf(machine, valid.round));
  add(polkaOf(machine, round?.proposal?.polRound ?? -1));
  return [...found];
}

function allMessages(round: Round): Message[] {
  const proposal: Proposal[] = round.proposal === undefined ? [] : [round.proposal];
  return [...proposal, ...round.prevotes.values(), ...round.precommits.values(), ...round.conflicting];
}

function missingFrom(machine: Readonly<Machine>, round: Round, other: PeerRoundState): Message[] {
  const { members } = machine.rules;
  const has = (places: readonly number[]) => new Set(places.map((place) => members[place]));
  const [prevotes, precommits] = [has(other.prevotes), has(other.precommits)];
  return allMessages(round).filter((message) => {
    if (message.kind === 'proposal') return !other.hasProposal;
    return !(message.kind === 'prevote' ? prevotes : precommits).has(message.validatorId);
  });
}

/** The proposal and prevotes of a round whose value may be proposed again. */
function polkaOf(machine: Readonly<Machine>, number: number): Message[] {
  const round = machine.rounds.get(number);
  if (round === undefined) return [];
  const proposal: Message[] = round.proposal === undefined ? [] : [round.proposal];
  return [
    ...proposal,
    ...round.prevotes.values(),
    ...round.conflicting.filter(({ kind }) => kind === 'prevote'),
  ];
}

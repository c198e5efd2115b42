import { faultTolerance } from '#core/ledger/consensus.ts';
import { isDecided, judge, type Machine, roundOf, schedule, startRound, vote } from './machine-state.ts';
import type { Effect, Proposal, Value, Verdict, Vote } from './messages.ts';
import { countFor, countPassed, isSameValue, type Round, senders, votesFor } from './round.ts';

/** The "upon" rules of Tendermint, until none applies any more. */
export function applyRules(machine: Machine, effects: Effect[]): void {
  if (machine.step === 'idle') return;
  let before = -1;
  while (effects.length !== before && machine.step !== 'decided') {
    before = effects.length;
    decide(machine, effects);
    requestCommitted(machine, effects);
    if (isDecided(machine)) return;
    skipRound(machine, effects);
    prevote(machine, effects);
    precommit(machine, effects);
    startTimers(machine, effects);
  }
}

function isAcceptable(verdict: Round['verdict']): boolean {
  return verdict === 'valid' || verdict === 'late';
}

function decide(machine: Machine, effects: Effect[]): void {
  for (const [number, round] of machine.rounds) {
    const value = round.proposal?.value;
    if (round.proposal === undefined || value === undefined) continue;
    if (countFor(round, 'precommit', value) < machine.rules.quorum) continue;
    if (round.verdict === 'unavailable') judge(round, round.proposal, effects);
    if (!isAcceptable(round.verdict)) continue;
    machine.step = 'decided';
    const precommits = votesFor(round, 'precommit', value);
    precommits.sort((a, b) => (a.validatorId < b.validatorId ? -1 : 1));
    effects.push({ kind: 'decide', height: machine.rules.height, round: number, value, precommits });
    return;
  }
}

/** After a proposer equivocates, a member may hold a proposal other than the decided one; it requests the committed docket. */
function requestCommitted(machine: Machine, effects: Effect[]): void {
  for (const round of machine.rounds.values()) {
    if (round.commitRequested || round.precommits.size < machine.rules.quorum) continue;
    for (const vote of round.precommits.values()) {
      if (vote.value === undefined || isSameValue(vote.value, round.proposal?.value)) continue;
      if (countFor(round, 'precommit', vote.value) < machine.rules.quorum) continue;
      round.commitRequested = true;
      effects.push({ kind: 'behind', height: machine.rules.height, validatorId: vote.validatorId });
      break;
    }
  }
}

function skipRound(machine: Machine, effects: Effect[]): void {
  const needed = faultTolerance(machine.rules.members.length) + 1;
  const higher = [...machine.rounds.keys()].filter((number) => number > machine.round).sort((a, b) => b - a);
  for (const number of higher) {
    if (senders(roundOf(machine, number)).size < needed) continue;
    startRound(machine, number, effects);
    return;
  }
}

function prevote(machine: Machine, effects: Effect[]): void {
  if (machine.step !== 'propose') return;
  const round = roundOf(machine, machine.round);
  const { proposal, verdict } = round;
  if (proposal === undefined || verdict === 'pending' || verdict === undefined) return;
  if (proposal.polRound >= 0 && !hasPolka(machine, proposal.polRound, proposal.value)) return;
  vote(machine, 'prevote', mayPrevote(machine, proposal, verdict) ? proposal.value : undefined, effects);
}

function hasPolka(machine: Machine, round: number, value: Value): boolean {
  const known = machine.rounds.get(round);
  return known !== undefined && countFor(known, 'prevote', value) >= machine.rules.quorum;
}

function mayPrevote(machine: Machine, proposal: Proposal, verdict: Verdict): boolean {
  const { locked } = machine;
  if (verdict === 'invalid' || verdict === 'unavailable') return false;
  if (proposal.polRound === -1 && verdict === 'late') return false;
  return (
    locked === undefined || isSameValue(locked.value, proposal.value) || proposal.polRound >= locked.round
  );
}

function precommit(machine: Machine, effects: Effect[]): void {
  if (machine.step !== 'prevote' && machine.step !== 'precommit') return;
  const round = roundOf(machine, machine.round);
  const { quorum } = machine.rules;
  const proposal = round.proposal;
  if (proposal !== undefined && !round.polkaSeen && countFor(round, 'prevote', proposal.value) >= quorum) {
    if (round.verdict === 'unavailable') judge(round, proposal, effects);
    if (!isAcceptable(round.verdict)) return;
    round.polkaSeen = true;
    const held = { round: machine.round, value: proposal.value };
    machine.valid = held;
    if (machine.step === 'prevote') {
      machine.locked = held;
      vote(machine, 'precommit', proposal.value, effects);
    }
    return;
  }
  if (machine.step === 'prevote' && countFor(round, 'prevote', undefined) >= quorum) {
    vote(machine, 'precommit', undefined, effects);
  }
}

function startTimers(machine: Machine, effects: Effect[]): void {
  const round = roundOf(machine, machine.round);
  const { quorum } = machine.rules;
  const passed = (kind: Vote['kind']) => countPassed(machine.rounds, machine.round, kind) >= quorum;
  if (machine.step === 'prevote' && !round.prevoteTimer && passed('prevote')) {
    round.prevoteTimer = true;
    schedule(machine, 'prevote', effects);
  }
  if (!round.precommitTimer && passed('precommit')) {
    round.precommitTimer = true;
    schedule(machine, 'precommit', effects);
  }
}

import { proposerOf } from '#core/ledger/consensus.ts';
import {
  isDecided,
  judge,
  type Machine,
  propose,
  type ResumePoint,
  roundOf,
  schedule,
  startRound,
  vote,
} from './machine-state.ts';
import type { HeightRules } from './members.ts';
import type { Effect, Input, Message, Proposal, TimedStep, Value, Verdict, Vote } from './messages.ts';
import { agrees, isProposal, keepConflicting, type Round, senders, votesOf } from './round.ts';
import { applyRules } from './upon-rules.ts';

const roundsAhead = 16;

export function createMachine(rules: HeightRules): Machine {
  return { rules, round: 0, step: 'idle', locked: undefined, valid: undefined, rounds: new Map(), early: [] };
}

/** Begins the next height and replays the messages that were received early. */
export function beginHeight(machine: Machine, rules: HeightRules): Effect[] {
  const early = machine.early;
  Object.assign(machine, { rules, round: 0, step: 'idle', locked: undefined, valid: undefined, early: [] });
  machine.rounds.clear();
  return early.flatMap((message) => advance(machine, { kind: 'message', message }));
}

/**
 * Resumes a height after a restart with the round and locks that were on disk. The caller must then feed the own messages
 * of that height back as inputs. Timers of the current step are scheduled again.
 */
export function resume(machine: Machine, at: ResumePoint): Effect[] {
  Object.assign(machine, at);
  const effects: Effect[] = [];
  schedule(machine, at.step, effects);
  return effects;
}

export function advance(machine: Machine, input: Input): Effect[] {
  const effects: Effect[] = [];
  if (machine.step === 'decided' && input.kind !== 'message') return effects;
  switch (input.kind) {
    case 'work':
      onWork(machine, effects);
      break;
    case 'built':
      onBuilt(machine, input.round, input.value, effects);
      break;
    case 'message':
      onMessage(machine, input.message, effects);
      break;
    case 'judged':
      onJudged(machine, input, effects);
      break;
    case 'committed':
      if (input.height === machine.rules.height) machine.step = 'decided';
      if (isDecided(machine)) effects.push({ ...input, kind: 'decide' });
      break;
    case 'refused':
      onRefused(machine, input.round, input.message, effects);
      break;
    case 'timeout':
      onTimeout(machine, input, effects);
      break;
  }
  applyRules(machine, effects);
  return effects;
}

/** Starts the round, or builds what could not be built when the round began. A proposal is never built twice. */
function onWork(machine: Machine, effects: Effect[]): void {
  const { rules, round } = machine;
  if (machine.step === 'idle') startRound(machine, round, effects);
  const known = machine.rounds.get(round);
  if (machine.step !== 'propose' || known?.nothingBuilt !== true) return;
  known.nothingBuilt = false;
  effects.push({ kind: 'build', height: rules.height, round });
}

function onBuilt(machine: Machine, round: number, value: Value | undefined, effects: Effect[]): void {
  if (machine.step !== 'propose' || machine.round !== round) return;
  if (value !== undefined) {
    propose(machine, value, -1, effects);
  } else if (round === 0 && machine.rounds.size <= 1 && senders(roundOf(machine, 0)).size === 0) {
    machine.step = 'idle';
    machine.rounds.clear();
  } else {
    roundOf(machine, round).nothingBuilt = true;
  }
}

function onMessage(machine: Machine, message: Message, effects: Effect[]): void {
  const { rules } = machine;
  if (!rules.members.includes(message.validatorId)) return;
  if (message.height > rules.height) {
    bufferEarly(machine, message, effects);
    return;
  }
  if (message.height < rules.height || message.round < 0) return;
  if (message.round > machine.round + roundsAhead * rules.members.length) return;
  const round = roundOf(machine, message.round);
  if (isProposal(message)) takeProposal(machine, round, message, effects);
  else takeVote(round, message, effects);
  if (machine.step === 'idle') startRound(machine, machine.round, effects);
}

function bufferEarly(machine: Machine, message: Message, effects: Effect[]): void {
  const { rules } = machine;
  const isNext = message.height === rules.height + 1;
  if (isNext && machine.early.length < 8 * rules.members.length) machine.early.push(message);
  effects.push({ kind: 'behind', height: message.height, validatorId: message.validatorId });
}

function takeProposal(machine: Machine, round: Round, proposal: Proposal, effects: Effect[]): void {
  const { rules } = machine;
  if (proposal.validatorId !== proposerOf(rules.members, rules.height, proposal.round)) return;
  if (proposal.polRound < -1 || proposal.polRound >= proposal.round) return;
  if (round.proposal !== undefined) {
    if (!agrees(round.proposal, proposal)) {
      effects.push({
        kind: 'evidence',
        evidence: { kind: 'duplicate-proposal', first: round.proposal, second: proposal },
      });
    }
    return;
  }
  round.proposal = proposal;
  judge(round, proposal, effects);
}

function takeVote(round: Round, vote: Vote, effects: Effect[]): void {
  const votes = votesOf(round, vote.kind);
  const earlier = votes.get(vote.validatorId);
  if (earlier === undefined) votes.set(vote.validatorId, vote);
  else if (!agrees(earlier, vote)) {
    effects.push({ kind: 'evidence', evidence: { kind: 'duplicate-vote', first: earlier, second: vote } });
    keepConflicting(round, vote);
  }
}

function onJudged(
  machine: Machine,
  judged: { round: number; hash: string; verdict: Verdict },
  effects: Effect[],
): void {
  const round = machine.rounds.get(judged.round);
  if (round?.proposal?.value.hash !== judged.hash || round.verdict !== 'pending') return;
  round.verdict = judged.verdict;
  const isCurrent = machine.step === 'propose' && machine.round === judged.round;
  if (judged.verdict === 'unavailable' && isCurrent) vote(machine, 'prevote', undefined, effects);
}

/** The signer refused, since it signed another message before a crash. The machine continues without the vote; it never bypasses the guard. */
function onRefused(machine: Machine, round: number, kind: Message['kind'], effects: Effect[]): void {
  if (round !== machine.round || kind === 'proposal') return;
  schedule(machine, kind, effects);
}

function onTimeout(
  machine: Machine,
  timeout: { height: number; round: number; step: TimedStep },
  effects: Effect[],
): void {
  if (timeout.height !== machine.rules.height || timeout.round !== machine.round || machine.step === 'idle')
    return;
  if (timeout.step === 'precommit') startRound(machine, machine.round + 1, effects);
  else if (timeout.step === 'propose' && machine.step === 'propose')
    vote(machine, 'prevote', undefined, effects);
  else if (timeout.step === 'prevote' && machine.step === 'prevote')
    vote(machine, 'precommit', undefined, effects);
}

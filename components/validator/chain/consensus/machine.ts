import { faultTolerance, proposerOf } from '#core/ledger/consensus.ts';
import { type HeightRules, timeoutMs } from './members.ts';
import type {
  Effect,
  Input,
  Message,
  Proposal,
  TimedStep,
  UnsignedVote,
  Value,
  Verdict,
  Vote,
} from './messages.ts';
import {
  agrees,
  countFor,
  countPassed,
  isProposal,
  isSameValue,
  keepConflicting,
  newRound,
  type Round,
  senders,
  votesFor,
  votesOf,
} from './round.ts';

/** idle: nothing to propose and nothing received; decided: waits for the rules of the next height. */
export type Step = 'idle' | 'propose' | 'prevote' | 'precommit' | 'decided';

export interface RoundValue {
  readonly round: number;
  readonly value: Value;
}

/**
 * One register's consensus "bft-1" at one height: Tendermint with locking, proposer rotation and proposer-based
 * timestamps. The machine is plain data; `advance` makes every change, is deterministic and does no I/O.
 * Messages must be authenticated (signature, membership, register) before they are passed in. Own messages come back as
 * inputs once they are signed and on disk, so that a set of one and a set of a hundred follow the same path.
 */
export interface Machine {
  rules: HeightRules;
  round: number;
  step: Step;
  locked: RoundValue | undefined;
  valid: RoundValue | undefined;
  readonly rounds: Map<number, Round>;
  /** Messages of the next height, bounded, kept until that height begins. */
  early: Message[];
}

/** The round state with which a height is resumed after a restart. */
export interface ResumePoint {
  readonly round: number;
  readonly step: TimedStep;
  readonly locked: RoundValue | undefined;
  readonly valid: RoundValue | undefined;
}

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

function roundOf(machine: Machine, number: number): Round {
  let round = machine.rounds.get(number);
  if (round === undefined) {
    round = newRound();
    machine.rounds.set(number, round);
  }
  return round;
}

function schedule(machine: Machine, step: TimedStep, effects: Effect[]): void {
  const { rules, round } = machine;
  effects.push({
    kind: 'schedule',
    height: rules.height,
    round,
    step,
    afterMs: timeoutMs(rules.timers, step, round),
  });
}

function startRound(machine: Machine, number: number, effects: Effect[]): void {
  machine.round = number;
  machine.step = 'propose';
  const { rules } = machine;
  schedule(machine, 'propose', effects);
  if (proposerOf(rules.members, rules.height, number) === rules.self) {
    if (machine.valid === undefined) effects.push({ kind: 'build', height: rules.height, round: number });
    else propose(machine, machine.valid.value, machine.valid.round, effects);
  }
}

function propose(machine: Machine, value: Value, polRound: number, effects: Effect[]): void {
  const { rules, round } = machine;
  effects.push({ kind: 'sign', message: { kind: 'proposal', height: rules.height, round, polRound, value } });
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

function judge(round: Round, proposal: Proposal, effects: Effect[]): void {
  round.verdict = 'pending';
  effects.push({ kind: 'judge', proposal });
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

function vote(machine: Machine, kind: Vote['kind'], value: Value | undefined, effects: Effect[]): void {
  const { rules, round } = machine;
  const message: UnsignedVote = {
    kind,
    height: rules.height,
    round,
    value: value && { hash: value.hash, merkleRoot: value.merkleRoot, logRoot: value.logRoot },
    timestamp: value?.timestamp,
  };
  machine.step = kind;
  effects.push({ kind: 'sign', message });
}

/** The "upon" rules of Tendermint, until none applies any more. */
function applyRules(machine: Machine, effects: Effect[]): void {
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

function isDecided(machine: Machine): boolean {
  return machine.step === 'decided';
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

import { proposerOf } from '#core/ledger/consensus.ts';
import { type HeightRules, timeoutMs } from './members.ts';
import type { Effect, Message, Proposal, TimedStep, UnsignedVote, Value, Vote } from './messages.ts';
import { newRound, type Round } from './round.ts';

/** idle: nothing to propose and nothing received; decided: waits for the rules of the next height. */
type Step = 'idle' | 'propose' | 'prevote' | 'precommit' | 'decided';

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

/** The round of that number, begun when it is new. */
export function roundOf(machine: Machine, number: number): Round {
  let round = machine.rounds.get(number);
  if (round === undefined) {
    round = newRound();
    machine.rounds.set(number, round);
  }
  return round;
}

/** Schedules the timeout of a step of the current round. */
export function schedule(machine: Machine, step: TimedStep, effects: Effect[]): void {
  const { rules, round } = machine;
  effects.push({
    kind: 'schedule',
    height: rules.height,
    round,
    step,
    afterMs: timeoutMs(rules.timers, step, round),
  });
}

/** Begins a round; its proposer proposes the valid value again or builds one. */
export function startRound(machine: Machine, number: number, effects: Effect[]): void {
  machine.round = number;
  machine.step = 'propose';
  const { rules } = machine;
  schedule(machine, 'propose', effects);
  if (proposerOf(rules.members, rules.height, number) === rules.self) {
    if (machine.valid === undefined) effects.push({ kind: 'build', height: rules.height, round: number });
    else propose(machine, machine.valid.value, machine.valid.round, effects);
  }
}

export function propose(machine: Machine, value: Value, polRound: number, effects: Effect[]): void {
  const { rules, round } = machine;
  effects.push({ kind: 'sign', message: { kind: 'proposal', height: rules.height, round, polRound, value } });
}

/** Has a proposal judged. */
export function judge(round: Round, proposal: Proposal, effects: Effect[]): void {
  round.verdict = 'pending';
  effects.push({ kind: 'judge', proposal });
}

/** Casts the vote of a step; undefined is nil. */
export function vote(
  machine: Machine,
  kind: Vote['kind'],
  value: Value | undefined,
  effects: Effect[],
): void {
  machine.step = kind;
  effects.push({ kind: 'sign', message: voteFor(machine, kind, value) });
}

/** The vote of a kind in the current round; undefined is nil. */
export function voteFor(
  { rules, round }: Readonly<Pick<Machine, 'rules' | 'round'>>,
  kind: Vote['kind'],
  value: Value | undefined,
): UnsignedVote {
  return {
    kind,
    height: rules.height,
    round,
    value: value && { hash: value.hash, merkleRoot: value.merkleRoot, logRoot: value.logRoot },
    timestamp: value?.timestamp,
  };
}

/** Whether this height is decided. */
export function isDecided(machine: Machine): boolean {
  return machine.step === 'decided';
}

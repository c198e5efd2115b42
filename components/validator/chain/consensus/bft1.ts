import { advance, beginHeight, createMachine, resume } from './machine.ts';
import type { Machine, ResumePoint } from './machine-state.ts';
import type { HeightRules } from './members.ts';
import type { Effect, Input, UnsignedProposal, UnsignedVote } from './messages.ts';
import { votesAhead } from './votes-ahead.ts';

/** The functions by which a driver uses the consensus machine. */
export interface Consensus {
  create(rules: HeightRules): Machine;
  begin(machine: Machine, rules: HeightRules): Effect[];
  resume(machine: Machine, at: ResumePoint): Effect[];
  advance(machine: Machine, input: Input): Effect[];
  /** The votes that follow an own proposal that is valid, which may be signed together with it. Changes nothing. */
  votesAhead(machine: Readonly<Machine>, proposal: UnsignedProposal): UnsignedVote[];
}

/** The consensus rules "bft-1". */
export function bft1(): Consensus {
  return { create: createMachine, begin: beginHeight, resume, advance, votesAhead };
}

import { advance, beginHeight, createMachine, type Machine, type ResumePoint, resume } from './machine.ts';
import type { HeightRules } from './members.ts';
import type { Effect, Input } from './messages.ts';

/** The machine's door: whoever drives it goes through these four. */
export interface Consensus {
  create(rules: HeightRules): Machine;
  begin(machine: Machine, rules: HeightRules): Effect[];
  resume(machine: Machine, at: ResumePoint): Effect[];
  advance(machine: Machine, input: Input): Effect[];
}

/** The rules of "bft-1", as they run. */
export function bft1(): Consensus {
  return { create: createMachine, begin: beginHeight, resume, advance };
}

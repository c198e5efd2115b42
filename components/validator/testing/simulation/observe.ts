import type { Consensus } from '../../chain/consensus/bft1.ts';
import type { Machine } from '../../chain/consensus/machine-state.ts';
import type { HeightRules } from '../../chain/consensus/members.ts';
import type { Effect, Message } from '../../chain/consensus/messages.ts';

export interface Watcher {
  /** A member begins a height. */
  begins(rules: HeightRules): void;
  /** A member's own message is on disk, signed and sent. */
  released(message: Message): void;
  did(effect: Effect, machine: Machine): void;
}

/** Wraps the consensus functions with an observer of all inputs and effects. */
export function observed(consensus: Consensus, watcher: Watcher): Consensus {
  const pass = (machine: Machine, effects: Effect[]) => {
    for (const effect of effects) watcher.did(effect, machine);
    return effects;
  };
  return {
    create(rules) {
      watcher.begins(rules);
      return consensus.create(rules);
    },
    begin(machine, rules) {
      watcher.begins(rules);
      return pass(machine, consensus.begin(machine, rules));
    },
    votesAhead: (machine, proposal) => consensus.votesAhead(machine, proposal),
    resume: (machine, at) => pass(machine, consensus.resume(machine, at)),
    advance(machine, input) {
      const isOwn = input.kind === 'message' && input.message.validatorId === machine.rules.self;
      if (isOwn) watcher.released(input.message);
      // A set of one may decide with its own precommit after a restart.
      if (input.kind === 'committed' && machine.rules.members.length === 1) {
        for (const vote of input.precommits) watcher.released(vote);
      }
      return pass(machine, consensus.advance(machine, input));
    },
  };
}

import type { Consensus } from './bft1.ts';
import type { Machine } from './machine-state.ts';
import type { Effect, Input, Message } from './messages.ts';
import { isProposal, votesOf } from './round.ts';

/** The counters of one member in one register since its start. */
export interface Counts {
  /** Rounds that ended, with or without a decision. */
  rounds: number;
  roundsFailed: number;
  proposalsMade: number;
  proposalsReceived: number;
  votesCast: number;
  votesNil: number;
  evidenceCount: number;
  decided: number;
  /** Total time from the start of work on a docket to its decision, over all decided dockets. */
  decidingMs: number;
}

/** Counters at zero. */
export function zeroCounts(): Counts {
  return {
    rounds: 0,
    roundsFailed: 0,
    proposalsMade: 0,
    proposalsReceived: 0,
    votesCast: 0,
    votesNil: 0,
    evidenceCount: 0,
    decided: 0,
    decidingMs: 0,
  };
}

/** Counts the inputs and effects of a machine without changing them. */
export class Tally {
  readonly #counts = zeroCounts();
  readonly #self: string;
  readonly #nowMs: () => number;
  #round = 0;
  #sinceMs: number | undefined;

  constructor(self: string, nowMs: () => number) {
    this.#self = self;
    this.#nowMs = nowMs;
  }

  get counts(): Readonly<Counts> {
    return this.#counts;
  }

  /** Wraps the consensus functions with counters. */
  instrument(consensus: Consensus): Consensus {
    return {
      create: (rules) => consensus.create(rules),
      votesAhead: (machine, proposal) => consensus.votesAhead(machine, proposal),
      begin: (machine, rules) => {
        const effects = consensus.begin(machine, rules);
        this.#round = 0;
        this.#sinceMs = undefined;
        // messages that were received early are replayed within `begin`
        for (const { proposal } of machine.rounds.values())
          if (proposal !== undefined) this.#onProposal(proposal);
        this.#after(machine, effects);
        return effects;
      },
      resume: (machine, at) => {
        const effects = consensus.resume(machine, at);
        this.#round = machine.round;
        this.#after(machine, effects);
        return effects;
      },
      advance: (machine, input) => {
        const isNew = isFirst(machine, input);
        const effects = consensus.advance(machine, input);
        if (input.kind === 'message' && isNew && !isFirst(machine, input)) this.#onMessage(input.message);
        this.#after(machine, effects);
        return effects;
      },
    };
  }

  #onMessage(message: Message): void {
    if (isProposal(message)) {
      this.#onProposal(message);
    } else if (message.validatorId === this.#self) {
      this.#counts.votesCast += 1;
      if (message.value === undefined) this.#counts.votesNil += 1;
    }
  }

  #onProposal({ validatorId }: Message): void {
    if (validatorId === this.#self) this.#counts.proposalsMade += 1;
    else this.#counts.proposalsReceived += 1;
  }

  #after(machine: Machine, effects: readonly Effect[]): void {
    if (machine.step === 'idle') this.#sinceMs = undefined;
    else this.#sinceMs ??= this.#nowMs();
    if (machine.round > this.#round) {
      this.#counts.rounds += machine.round - this.#round;
      this.#counts.roundsFailed += machine.round - this.#round;
      this.#round = machine.round;
    }
    for (const effect of effects) {
      if (effect.kind === 'evidence') this.#counts.evidenceCount += 1;
      if (effect.kind === 'decide') this.#onDecided();
    }
  }

  #onDecided(): void {
    const nowMs = this.#nowMs();
    this.#counts.rounds += 1;
    this.#counts.decided += 1;
    this.#counts.decidingMs += nowMs - (this.#sinceMs ?? nowMs);
  }
}

/** Whether the message is the first of its kind by that member in that round; repetitions are not counted. */
function isFirst(machine: Machine, input: Input): boolean {
  if (input.kind !== 'message') return false;
  const { message } = input;
  if (message.height !== machine.rules.height) return false;
  const round = machine.rounds.get(message.round);
  if (round === undefined) return true;
  return isProposal(message)
    ? round.proposal === undefined
    : !votesOf(round, message.kind).has(message.validatorId);
}

/** The voting facts of one height: the validator set, its quorum and the policy's timers. */
export interface HeightRules {
  readonly height: number;
  readonly self: string;
  /** Sorted by validator id. */
  readonly members: readonly string[];
  readonly quorum: number;
  readonly timers: Timers;
}

interface Timers {
  readonly proposeMs: number;
  readonly voteMs: number;
  readonly stepMs: number;
}

export function timeoutMs(timers: Timers, step: 'propose' | 'prevote' | 'precommit', round: number): number {
  return (step === 'propose' ? timers.proposeMs : timers.voteMs) + timers.stepMs * round;
}

/** The voting facts of one height: the validator set, its quorum and the policy's timers. */
export interface HeightRules {
  readonly height: number;
  readonly self: string;
  /** Sorted by validator id. */
  readonly members: readonly string[];
  readonly quorum: number;
  readonly timers: Timers;
}

export interface Timers {
  readonly proposeMs: number;
  readonly voteMs: number;
  readonly stepMs: number;
}

/** proposer(h, r) = V[(h + r) mod n], with V sorted by validator id. */
export function proposerOf(members: readonly string[], height: number, round: number): string {
  const chosen = members[(height + round) % members.length];
  if (chosen === undefined) throw new RangeError('a height without members has no proposer');
  return chosen;
}

/** The number of Byzantine members that the set tolerates: f = floor((n-1)/3). */
export function toleratedFaults(size: number): number {
  return Math.floor((size - 1) / 3);
}

export function timeoutMs(timers: Timers, step: 'propose' | 'prevote' | 'precommit', round: number): number {
  return (step === 'propose' ? timers.proposeMs : timers.voteMs) + timers.stepMs * round;
}

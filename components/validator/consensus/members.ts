/** The voting facts of one height: V(h), the quorum of decision D1 and the timers of policy. */
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

/** proposer(h, r) = V[(h + r) mod n], V sorted by validator id (L-73). */
export function proposerOf(members: readonly string[], height: number, round: number): string {
  const chosen = members[(height + round) % members.length];
  if (chosen === undefined) throw new RangeError('a height without members has no proposer');
  return chosen;
}

/** How many members may fail arbitrarily: f = floor((n-1)/3). */
export function toleratedFaults(size: number): number {
  return Math.floor((size - 1) / 3);
}

export function timeoutMs(timers: Timers, step: 'propose' | 'prevote' | 'precommit', round: number): number {
  return (step === 'propose' ? timers.proposeMs : timers.voteMs) + timers.stepMs * round;
}

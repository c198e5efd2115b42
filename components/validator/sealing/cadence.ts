import type { Rules } from './rules.ts';
import type { RegisterState } from './state.ts';

/** Decided dockets that may wait to be stored before no further one is decided (D19). */
export const mostUnstored = 16;

/** Each further member after the one whose task it is waits so much longer before it stores a docket (D19). */
const followMs = { step: 1_000, longest: 10_000 } as const;

/** What an operator may set at run time: both only keep within what the policy of a register allows. */
export interface Pace {
  /** Longest wait for more transactions; infinite: as long as the policy says. */
  intervalMs: number;
  /** Most transactions of a docket that is proposed here; infinite: as many as the policy allows. */
  maxTransactions: number;
}

/** What holds while nobody sets anything. */
export const freePace: Readonly<Pace> = {
  intervalMs: Number.POSITIVE_INFINITY,
  maxTransactions: Number.POSITIVE_INFINITY,
};

/** What could be proposed now. */
interface Waiting {
  /** Decided dockets that are not stored. */
  readonly inFlight: number;
  /** Transactions, and their bytes. */
  readonly waiting: number;
  readonly waitingBytes: number;
  readonly sinceDecidedMs: number;
}

/**
 * How long to wait for more transactions; 0 when nothing is on its way to the store, or a whole docket waits (D18): a docket
 * costs the same signatures and writes however few transactions it has.
 */
export function lingerMs(rules: Rules, now: Waiting, pace: Readonly<Pace>): number {
  const isWhole =
    now.waiting >= Math.min(rules.maxTransactionsPerDocket, pace.maxTransactions) ||
    now.waitingBytes >= rules.maxDocketBytes;
  if (now.inFlight === 0 || isWhole) return 0;
  const intervalMs = Math.min(rules.docketBuildIntervalMs, pace.intervalMs);
  return Math.max(0, intervalMs - now.sinceDecidedMs);
}

/**
 * Members that must have been heard lately for this one to propose. `minValidators` gates that and nothing else (L-113): who
 * was heard never changes the quorum. A set that is smaller than the policy asks for is held to its own size, or nothing
 * could ever change it.
 */
export function neededMembers({ members, policy }: RegisterState, quorum: number): number {
  return Math.max(quorum, Math.min(policy.validators.minValidators, members.length));
}

/** How long a member leaves the storing of a docket to others: the set's order, from the one whose task it is. */
export function storeAfterMs(members: readonly string[], self: string, writer: string): number {
  const own = members.indexOf(self);
  if (own === -1) return followMs.longest;
  const place = (own - members.indexOf(writer) + members.length) % members.length;
  return Math.min(place * followMs.step, followMs.longest);
}

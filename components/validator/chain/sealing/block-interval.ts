import type { Rules } from '../state/rules.ts';
import type { RegisterState } from '../state/state.ts';

/** Decided dockets that may wait to be stored; no further one is decided above that. */
export const maxUnstored = 16;

/** Fallback writers: each further member in the set's order waits this much longer before it stores a docket. */
const followMs = { step: 1_000, longest: 10_000 } as const;

/** Limits that an operator may set at runtime; they can only tighten the policy. */
export interface BuildLimits {
  /** Longest wait for more transactions; infinite: the policy's value. */
  intervalMs: number;
  /** Most transactions of a docket that this member proposes; infinite: the policy's value. */
  maxTransactions: number;
}

/** The limits when an operator has set none. */
export const unlimitedBuild: Readonly<BuildLimits> = {
  intervalMs: Number.POSITIVE_INFINITY,
  maxTransactions: Number.POSITIVE_INFINITY,
};

/** The input of the batch delay. */
interface ProposalBacklog {
  /** Decided dockets that are not stored. */
  readonly inFlight: number;
  /** Number of waiting transactions. */
  readonly waiting: number;
  readonly waitingBytes: number;
  readonly sinceDecidedMs: number;
  /** Time since the latest transaction arrived. */
  readonly sinceArrivalMs: number;
  /** Submissions are being admitted. */
  readonly isAdmitting: boolean;
  /** Transactions of the docket that was decided last. */
  readonly lastTransactions: number;
}

/** The wait for a docket worth its cost while transactions keep arriving. */
const underLoad = {
  /** A last docket of this size shows that there is load. */
  lastTransactions: 32,
  /** Waiting transactions that end the wait. */
  transactions: 400,
  /** Longest wait since the last decision. */
  longestMs: 300,
  /** A time without arrivals and admissions that ends the wait: clients may be waiting for this docket before they submit more. */
  pauseMs: 25,
} as const;

/**
 * How long to wait for more transactions, since a docket costs the same signatures and writes however few it has. 0 when the
 * waiting transactions fill a docket, and when there is no load: no docket is being stored and the last one was small.
 */
export function batchDelayMs(rules: Rules, now: ProposalBacklog, buildLimits: Readonly<BuildLimits>): number {
  const most = Math.min(rules.maxTransactionsPerDocket, buildLimits.maxTransactions);
  if (now.waiting >= most || now.waitingBytes >= rules.maxDocketBytes) return 0;
  const intervalMs = Math.min(rules.docketBuildIntervalMs, buildLimits.intervalMs);
  if (now.inFlight > 0) return Math.max(0, intervalMs - now.sinceDecidedMs);
  // A clock that was set back would lengthen the wait by the step.
  const isLoaded = now.lastTransactions >= underLoad.lastTransactions && now.sinceDecidedMs >= 0;
  if (!isLoaded || now.waiting >= underLoad.transactions) return 0;
  const restMs = Math.min(intervalMs, underLoad.longestMs) - now.sinceDecidedMs;
  const pauseMs = now.isAdmitting ? underLoad.pauseMs : underLoad.pauseMs - now.sinceArrivalMs;
  return Math.max(0, Math.min(restMs, pauseMs));
}

/**
 * Number of operational members that this one needs to propose. `minValidators` gates proposing only and never changes the
 * quorum. It is capped by the size of the set, since a smaller set could otherwise never be extended.
 */
export function minMembers({ members, policy }: RegisterState, quorum: number): number {
  return Math.max(quorum, Math.min(policy.validators.minValidators, members.length));
}

/** Delay before a member stores a docket itself, by its distance from the designated writer in the set's order. */
export function storeDelayMs(members: readonly string[], self: string, writer: string): number {
  const own = members.indexOf(self);
  if (own === -1) return followMs.longest;
  const place = (own - members.indexOf(writer) + members.length) % members.length;
  return Math.min(place * followMs.step, followMs.longest);
}

import type { RegisterPolicy } from '#core/ledger/policy.ts';

/** The specification's build interval: however large the policy sets its own, no docket waits longer (D18). */
const longestBuildIntervalMs = 10_000;

/** What of a register's policy the validator acts on. */
export type Rules = RegisterPolicy['consensus'] & { readonly leaderTimeoutMs: number };

export function rulesOf(policy: RegisterPolicy): Rules {
  const { consensus, leaderElection } = policy;
  return {
    ...consensus,
    docketBuildIntervalMs: Math.min(consensus.docketBuildIntervalMs, longestBuildIntervalMs),
    leaderTimeoutMs: leaderElection.leaderTimeoutMs,
  };
}

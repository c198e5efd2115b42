import type { RegisterPolicy } from '#core/ledger/policy.ts';

/** The specification's bound of the build interval, whatever the policy says. */
const maxBuildIntervalMs = 10_000;

/** The part of a register's policy that the validator acts on. */
export type Rules = RegisterPolicy['consensus'] & { readonly leaderTimeoutMs: number };

export function rulesOf(policy: RegisterPolicy): Rules {
  const { consensus, leaderElection } = policy;
  return {
    ...consensus,
    docketBuildIntervalMs: Math.min(consensus.docketBuildIntervalMs, maxBuildIntervalMs),
    leaderTimeoutMs: leaderElection.leaderTimeoutMs,
  };
}

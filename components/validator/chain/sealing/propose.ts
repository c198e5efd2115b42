import { chooseTransactions } from '../building/choose.ts';
import { buildDocket, type Docket, nextTimestamp } from '../building/docket.ts';
import { Overlay } from '../building/overlay.ts';
import type { Pool } from '../pool/pool.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { RegisterState } from '../state/state.ts';

interface Proposer {
  readonly walletAddress: string;
  readonly nowMicros: bigint;
  readonly nowMs: number;
  /** Most transactions of this docket; the policy may allow fewer. */
  readonly limit: number;
  /** JSON text of docket 0's configuration, from its transaction. */
  genesisConfig(genesis: PooledTransaction): string;
}

/** Builds the next docket of a state from the pool; undefined when nothing can be sealed. */
export function proposeDocket(state: RegisterState, pool: Pool, proposer: Proposer): Docket | undefined {
  const { rules, height } = state;
  const find = (txId: string) => {
    const known = pool.find(txId);
    return known?.stage === 'waiting' ? known.transaction : undefined;
  };
  const overlay =
    height === 0
      ? undefined
      : new Overlay(state, nextTimestamp(state, proposer.nowMicros), (txId) => pool.findDecided(txId));
  const chosen = chooseTransactions(candidates(pool, height), find, {
    maxTransactions: height === 0 ? 1 : Math.min(rules.maxTransactionsPerDocket, proposer.limit),
    maxBytes: rules.maxDocketBytes,
    atMs: height === 0 ? 0 : proposer.nowMs,
    take: (chain) => overlay?.take(chain) ?? true,
  });
  const [first] = chosen;
  if (first === undefined) return undefined;
  return buildDocket(state, chosen, {
    validatorAddress: proposer.walletAddress,
    nowMicros: proposer.nowMicros,
    genesisConfig: height === 0 ? proposer.genesisConfig(first) : undefined,
  });
}

/** Docket 0 holds exactly the genesis transaction. */
function* candidates(pool: Pool, height: number): Iterable<PooledTransaction> {
  for (const transaction of pool.waiting()) {
    if ((transaction.type === 'Genesis') === (height === 0)) yield transaction;
  }
}

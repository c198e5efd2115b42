import type { PooledTransaction } from '../pool/transaction.ts';

interface DocketLimits {
  readonly maxTransactions: number;
  readonly maxBytes: number;
  /** Transactions that expire at or before this instant are skipped: expiry is judged by the docket's timestamp. */
  readonly atMs: number;
  /** Whether the register's rules accept these too, in this order behind those chosen so far. */
  take(chain: readonly PooledTransaction[]): boolean;
}

/**
 * Chooses the transactions of the next docket from the waiting ones: oldest first, control before action, parents before
 * children, and no two with the same replay key. A parent that waits behind its child is moved forward. The first
 * transaction that does not fit ends the selection, so that a large transaction is not overtaken forever.
 */
export function chooseTransactions(
  waiting: Iterable<PooledTransaction>,
  find: (txId: string) => PooledTransaction | undefined,
  limits: DocketLimits,
): PooledTransaction[] {
  const chosen = new Set<PooledTransaction>();
  const replays = new Set<string>();
  let bytes = 0;
  for (const chain of chains(waiting, find, chosen)) {
    if (chosen.size === limits.maxTransactions) break;
    if (chain.some((each) => isExcluded(each, limits.atMs, replays))) continue;
    const size = chain.reduce((sum, each) => sum + each.sizeBytes, 0);
    if (chosen.size + chain.length > limits.maxTransactions || bytes + size > limits.maxBytes) {
      return chosen.size === 0 ? fittingPrefix(chain, limits) : [...chosen];
    }
    if (!limits.take(chain)) continue;
    take(chain, chosen, replays);
    bytes += size;
  }
  return [...chosen];
}

/** The waiting transactions that are not chosen yet, each behind its ancestors. */
function* chains(
  waiting: Iterable<PooledTransaction>,
  find: (txId: string) => PooledTransaction | undefined,
  chosen: ReadonlySet<PooledTransaction>,
): Iterable<PooledTransaction[]> {
  for (const transaction of waiting) {
    if (!chosen.has(transaction)) yield ancestry(transaction, find, chosen);
  }
}

function take(chain: readonly PooledTransaction[], chosen: Set<PooledTransaction>, replays: Set<string>) {
  for (const each of chain) {
    chosen.add(each);
    if (each.replayKey !== undefined) replays.add(each.replayKey);
  }
}

/** Whether the transaction has expired, or repeats a chosen one. */
function isExcluded(
  { expiresAtMs, replayKey }: PooledTransaction,
  atMs: number,
  replays: ReadonlySet<string>,
) {
  return expiresAtMs <= atMs || (replayKey !== undefined && replays.has(replayKey));
}

/** The transaction behind its waiting ancestors that are not chosen yet, oldest first. */
function ancestry(
  transaction: PooledTransaction,
  find: (txId: string) => PooledTransaction | undefined,
  chosen: ReadonlySet<PooledTransaction>,
): PooledTransaction[] {
  const chain = [transaction];
  let previous = transaction.previousTransactionId;
  while (previous !== undefined) {
    const parent = find(previous);
    if (parent === undefined || chosen.has(parent) || chain.includes(parent)) break;
    chain.push(parent);
    previous = parent.previousTransactionId;
  }
  return chain.reverse();
}

/** The longest prefix that fits, of an ancestry too long for one docket. */
function fittingPrefix(chain: readonly PooledTransaction[], limits: DocketLimits): PooledTransaction[] {
  const fitting: PooledTransaction[] = [];
  let bytes = 0;
  for (const each of chain) {
    bytes += each.sizeBytes;
    if (fitting.length === limits.maxTransactions || bytes > limits.maxBytes) break;
    if (!limits.take([each])) break;
    fitting.push(each);
  }
  return fitting;
}

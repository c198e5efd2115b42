import type { Docket } from '../building/docket.ts';
import type { DecidedDocket } from '../log/entries.ts';
import type { PooledTransaction } from '../pool/transaction.ts';

/** Rebuilds a docket from its header; undefined when one of its transactions is not there. */
export function rebuildDocket(
  header: DecidedDocket['header'],
  find: (txId: string) => PooledTransaction | undefined,
): Docket | undefined {
  const transactions = header.transactionIds.flatMap((txId) => find(txId) ?? []);
  return transactions.length === header.transactionIds.length ? { header, transactions } : undefined;
}

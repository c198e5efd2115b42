import { encodeHex } from '#core/encoding/hex.ts';
import { root } from '#core/ledger/merkle.ts';
import type { Docket } from '../building/docket.ts';
import type { DecidedDocket, Mode, OwnMessage } from '../log/entries.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { SealedDocket } from './ports.ts';

/** What the log held of a register when the process started. */
export interface RestoredRegister {
  readonly decided: readonly SealedDocket[];
  readonly own: readonly OwnMessage[];
  readonly ownDockets: readonly Docket[];
  readonly mode: Mode;
}

/** Ways to choose among records of the same ids that are tried. */
const mostChoices = 1_024;

/**
 * Rebuilds a docket from its header; undefined when one of its transactions is not there.
 * @param find every record that is known under an id: the signature covers id and payload, so there may be several, and the
 * Merkle root tells which one was meant
 */
export function rebuildDocket(
  header: DecidedDocket['header'],
  find: (txId: string) => readonly PooledTransaction[],
): Docket | undefined {
  const candidates = header.transactionIds.map(find);
  const choices = candidates.reduce((product, { length }) => product * length, 1);
  for (let choice = 0; choice < Math.min(choices, mostChoices); choice += 1) {
    const transactions = choose(candidates, choice);
    const merkleRoot = encodeHex(root(transactions.map(({ leaf }) => leaf)));
    if (merkleRoot === header.merkleRoot) return { header, transactions };
  }
  return undefined;
}

/** One of each; the number of the choice in mixed radix. */
function choose(
  candidates: readonly (readonly PooledTransaction[])[],
  choice: number,
): readonly PooledTransaction[] {
  let rest = choice;
  return candidates.flatMap((each) => {
    const chosen = each[rest % each.length];
    rest = Math.floor(rest / each.length);
    return chosen ?? [];
  });
}

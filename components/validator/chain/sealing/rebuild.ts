import { encodeHex } from '#core/encoding/hex.ts';
import { root } from '#core/ledger/merkle.ts';
import type { Docket } from '../building/docket.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { DecidedDocket, Mode, OwnMessage } from '../records/entries.ts';
import type { SealedDocket } from './ports.ts';

/** The state of a register that the log held at start. */
export interface RestoredRegister {
  readonly decided: readonly SealedDocket[];
  readonly own: readonly OwnMessage[];
  readonly ownDockets: readonly Docket[];
  readonly mode: Mode;
}

/** Bound of combinations that are tried among records with the same id. */
const maxChoices = 1_024;

/**
 * Rebuilds a docket from its header; undefined when one of its transactions is missing.
 * @param find every record known under an id. Several may exist, because the signature covers id and payload only; the Merkle
 * root tells which one the docket contains
 */
export function rebuildDocket(
  header: DecidedDocket['header'],
  find: (txId: string) => readonly PooledTransaction[],
): Docket | undefined {
  const candidates = header.transactionIds.map(find);
  const choices = candidates.reduce((product, { length }) => product * length, 1);
  for (let choice = 0; choice < Math.min(choices, maxChoices); choice += 1) {
    const transactions = choose(candidates, choice);
    const merkleRoot = encodeHex(root(transactions.map(({ leaf }) => leaf)));
    if (merkleRoot === header.merkleRoot) return { header, transactions };
  }
  return undefined;
}

/** One record per id; the choice is a number in mixed radix. */
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

import type { KeyKind } from '#core/ledger/key-filter.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { anyKeyIn, type KeySegments } from '../segments/store.ts';
import type { CommitOutcome, DocketCommit, NewTransaction } from './commit/docket-commit.ts';

/** Keys that must be unique in the register, the id first. */
const keysOf: readonly (readonly [KeyKind, CommitOutcome, (one: NewTransaction) => string | undefined])[] = [
  ['id', 'already_sealed', (one) => one.txId],
  ['successor', 'second_successor', (one) => (one.onlySuccessor ? one.previousTxId : undefined)],
  ['replay', 'replay', (one) => one.replayKey],
];

/**
 * Finds a key of the docket that a sealed segment holds; the index detects repetitions in the open one. Sealed segments
 * never change and the commit is gated on the open segment, so the result still holds at the commit.
 */
export async function findRepeated(
  db: Reader<RegisterSchema>,
  keySegments: KeySegments,
  { registerNo, segment, transactions }: DocketCommit,
): Promise<CommitOutcome | undefined> {
  const unknown = Array.from(
    { length: Math.max(0, segment - keySegments.from) },
    (_, n) => keySegments.from + n,
  );
  for (const [kind, outcome, keyOf] of keysOf) {
    const keys = transactions.flatMap((one) => {
      const text = keyOf(one);
      if (text === undefined) return [];
      const key = Buffer.from(text, 'hex');
      return [{ key, segments: [...keySegments.before(kind, key), ...unknown] }];
    });
    if (await anyKeyIn(db, registerNo, kind, keys)) return outcome;
  }
  return undefined;
}

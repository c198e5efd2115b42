import { addKey, emptyFilter, wordsOfHex } from '#core/ledger/key-filter.ts';
import type { KeyPart } from '../chain/keys/key-snapshot.ts';
import type { PooledTransaction } from '../chain/pool/transaction.ts';
import type { SealedDocket } from '../chain/sealing/ports.ts';

const docketsPerSegment = 4;

/** The keys of the stored dockets, one filter for a few of them. */
export function* keyParts(dockets: readonly SealedDocket[]): Generator<KeyPart> {
  const segments = Array.from({ length: Math.ceil((dockets.length + 1) / docketsPerSegment) }, (_, index) =>
    dockets.slice(index * docketsPerSegment, (index + 1) * docketsPerSegment),
  );
  const transactionCount = dockets.reduce((sum, { docket }) => sum + docket.transactions.length, 0);
  const logRoot = dockets.at(-1)?.docket.header.logRoot ?? '';
  yield { kind: 'begin', height: dockets.length, logRoot, transactionCount, filters: segments.length };
  for (const [filter, segment] of segments.entries()) {
    const bits = filterOf(segment.flatMap(({ docket }) => docket.transactions));
    const half = Math.ceil(bits.length / 2);
    for (const part of [bits.subarray(0, half), bits.subarray(half)]) {
      if (part.length > 0) yield { kind: 'filter', filter, sizeBytes: bits.length, bits: part };
    }
  }
  yield { kind: 'end' };
}

function filterOf(transactions: readonly PooledTransaction[]): Uint8Array {
  const keys = transactions.flatMap(({ txId, replayKey, exclusivePredecessor, previousTransactionId }) => [
    wordsOfHex('id', txId),
    ...(replayKey === undefined ? [] : [wordsOfHex('replay', replayKey)]),
    ...(exclusivePredecessor && previousTransactionId !== undefined
      ? [wordsOfHex('successor', previousTransactionId)]
      : []),
  ]);
  const filter = emptyFilter(keys.length);
  for (const words of keys) addKey(filter, words);
  return filter;
}

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PooledTransaction } from '../pool/transaction.ts';
import { chooseTransactions } from './choose.ts';

function transaction(
  txId: string,
  previous: string | undefined,
  sizeBytes = 10,
  expiresAtMs = 1_000,
): PooledTransaction {
  const record = new Uint8Array(sizeBytes);
  return {
    registerId: 'r',
    txId,
    type: 'Action',
    lane: 'action',
    senderAddress: 's',
    previousTransactionId: previous,
    exclusivePredecessor: previous !== undefined,
    replayKey: undefined,
    record,
    leaf: record,
    payload: new Uint8Array(),
    payloadHashForm: 'jcs',
    bound: true,
    algorithms: ['ED25519'],
    sizeBytes,
    createdAt: '',
    expiresAtMs,
    addedAtMs: 0,
  };
}

function choose(waiting: PooledTransaction[], limits: { maxTransactions?: number; maxBytes?: number } = {}) {
  const byId = new Map(waiting.map((each) => [each.txId, each]));
  const chosen = chooseTransactions(waiting, (txId) => byId.get(txId), {
    maxTransactions: 100,
    maxBytes: 10_000,
    atMs: 0,
    take: () => true,
    ...limits,
  });
  return chosen.map((each) => each.txId);
}

describe('the choice of transactions', () => {
  it('moves a parent before its child', () => {
    expect(
      choose([
        transaction('c', 'b'),
        transaction('x', undefined),
        transaction('b', 'a'),
        transaction('a', 'sealed'),
      ]),
    ).toEqual(['a', 'b', 'c', 'x']);
  });

  it('ends at the limits and never leaves a large transaction behind', () => {
    const waiting = [
      transaction('a', undefined, 40),
      transaction('big', undefined, 80),
      transaction('b', undefined, 10),
    ];
    expect(choose(waiting, { maxBytes: 100 })).toEqual(['a']);
    expect(choose(waiting, { maxTransactions: 2 })).toEqual(['a', 'big']);
  });

  it('takes the prefix of an ancestry that is too long for one docket', () => {
    const line = [transaction('c', 'b'), transaction('b', 'a'), transaction('a', undefined)];
    expect(choose(line, { maxTransactions: 2 })).toEqual(['a', 'b']);
  });

  it('excludes expired transactions and their descendants', () => {
    const waiting = [transaction('a', undefined, 10, 0), transaction('b', 'a'), transaction('c', undefined)];
    expect(choose(waiting)).toEqual(['c']);
  });

  it('takes one of several transactions with the same replay key, and its descendants', () => {
    const waiting = [
      { ...transaction('a', undefined), replayKey: 'key' },
      { ...transaction('b', undefined), replayKey: 'key' },
      transaction('c', 'b'),
      { ...transaction('d', undefined), replayKey: 'other' },
      transaction('e', 'a'),
    ];
    expect(choose(waiting)).toEqual(['a', 'd', 'e']);
  });

  it('keeps every order of parents and children', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(1_000), { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 60 }),
        (seeds, most) => {
          const all = seeds.map((seed, index) =>
            transaction(`t${index}`, index > 0 && seed % 3 > 0 ? `t${seed % index}` : undefined),
          );
          const shuffled = all.map((each, index) => ({ each, rank: ((seeds[index] ?? 0) * 7919) % 101 }));
          const chosen = choose(
            shuffled.sort((a, b) => a.rank - b.rank).map(({ each }) => each),
            { maxTransactions: most },
          );
          expect(chosen.length).toBeLessThanOrEqual(most);
          for (const [place, txId] of chosen.entries()) {
            const previous = all.find((each) => each.txId === txId)?.previousTransactionId;
            if (previous !== undefined) expect(chosen.slice(0, place)).toContain(previous);
          }
          expect(new Set(chosen).size).toBe(chosen.length);
        },
      ),
    );
  });
});

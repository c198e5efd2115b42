import { describe, expect, it } from 'vitest';
import { createPendingDockets } from './pending.ts';
import type { IndexedDocket, IndexRow } from './rows.ts';

const row: IndexRow = {
  txId: 'a',
  type: 'Action',
  senderAddress: 's',
  recipients: [],
  blueprintId: undefined,
  actionId: undefined,
  instanceId: undefined,
  previousTxId: undefined,
  createdMicros: 0,
};

const docket = (docketNumber: number, rows = 1, branch = ''): IndexedDocket => ({
  docketNumber,
  hash: `${branch}${docketNumber}`,
  previousHash: `${branch}${docketNumber - 1}`,
  rows: Array.from({ length: rows }, () => row),
});

const numbers = (dockets: readonly IndexedDocket[]) => dockets.map(({ docketNumber }) => docketNumber);

describe('dockets whose index rows are not written yet', () => {
  it('are taken in order, by register, in batches', () => {
    const pending = createPendingDockets({ mostRows: 100, batchRows: 5 });
    for (const number of [4, 5, 6]) pending.add(1, docket(number, 2));
    pending.add(2, docket(0));
    expect(numbers(pending.take(1))).toEqual([4, 5]);
    expect(pending.has(1)).toBe(true);
    expect(numbers(pending.take(1))).toEqual([6]);
    expect([pending.has(1), pending.take(1)]).toEqual([false, []]);
    expect(numbers(pending.take(2))).toEqual([0]);
  });

  it('have no gap: one that does not follow replaces the others', () => {
    const pending = createPendingDockets({ mostRows: 100, batchRows: 50 });
    for (const number of [1, 2, 5]) pending.add(1, docket(number));
    expect(numbers(pending.take(1))).toEqual([5]);
    pending.add(1, docket(6));
    pending.add(1, docket(7, 1, 'other '));
    expect(numbers(pending.take(1))).toEqual([7]);
  });

  it('are dropped beyond the bound, and a large docket alone is one batch', () => {
    const pending = createPendingDockets({ mostRows: 10, batchRows: 3 });
    pending.add(1, docket(1, 8));
    pending.add(2, docket(1, 2));
    pending.add(2, docket(2, 1));
    expect(pending.take(2)).toEqual([]);
    expect(numbers(pending.take(1))).toEqual([1]);
    pending.add(2, docket(3, 10));
    expect(numbers(pending.take(2))).toEqual([3]);
  });

  it('are bounded with their recipients', () => {
    const pending = createPendingDockets({ mostRows: 20, batchRows: 10 });
    const withRecipients = (docketNumber: number, count: number): IndexedDocket => ({
      ...docket(docketNumber),
      rows: [{ ...row, recipients: Array.from({ length: count }, (_, n) => `r${n}`) }],
    });
    pending.add(1, withRecipients(1, 20));
    expect(pending.has(1)).toBe(false);
    for (const number of [1, 2]) pending.add(1, withRecipients(number, 5));
    expect(numbers(pending.take(1))).toEqual([1]);
    pending.add(1, withRecipients(3, 13));
    expect(pending.has(1)).toBe(true);
    pending.drop(1);
    pending.add(1, withRecipients(4, 19));
    expect(numbers(pending.take(1))).toEqual([4]);
  });
});

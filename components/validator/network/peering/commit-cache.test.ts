import { describe, expect, it } from 'vitest';
import type { Certificate } from '#core/ledger/certificate.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { SealedDocket } from '../../chain/sealing/ports.ts';
import { CommitCache } from './commit-cache.ts';

function docket(docketNumber: number, count: number, sizeBytes: number): SealedDocket {
  const transactions = Array.from(
    { length: count },
    (_, index) => ({ txId: `${docketNumber}-${index}`, sizeBytes }) as PooledTransaction,
  );
  const header = { docketNumber } as DocketHeader;
  return { docket: { header, transactions }, certificate: {} as Certificate };
}

describe('the commit cache', () => {
  it('keeps the latest dockets of all registers within its bytes', () => {
    const commits = new CommitCache(100_000);
    for (let number = 0; number < 1_000; number += 1) commits.add('a', docket(number, 10, 500));
    expect(commits.find('a', 999)).toBeDefined();
    expect(commits.find('a', 998)).toBeDefined();
    expect(commits.find('a', 900)).toBeUndefined();
    expect(commits.findTransaction('a', '999-3')).toBeDefined();
    expect(commits.findTransaction('a', '900-3')).toBeUndefined();
    expect(commits.findTransaction('b', '999-3')).toBeUndefined();
  });

  it('keeps the last docket whatever its size', () => {
    const commits = new CommitCache(1_000);
    commits.add('a', docket(1, 1, 1_000_000));
    expect(commits.find('a', 1)).toBeDefined();
    commits.add('b', docket(1, 1, 10));
    expect(commits.find('a', 1)).toBeUndefined();
    expect(commits.find('b', 1)).toBeDefined();
  });
});

import { describe, expect, test } from 'vitest';
import { encodeHex } from '#core/encoding/hex.ts';
import { leafHash, root } from '#core/ledger/merkle.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { rebuildDocket } from './rebuild.ts';

function transaction(txId: string, text: string): PooledTransaction {
  const record = new TextEncoder().encode(text);
  return {
    registerId: 'ab'.repeat(16),
    txId,
    type: 'Action',
    lane: 'action',
    senderAddress: '',
    previousTransactionId: undefined,
    exclusivePredecessor: false,
    replayKey: undefined,
    record,
    leaf: leafHash(record),
    payload: new Uint8Array(),
    payloadHashForm: 'jcs',
    bound: false,
    algorithms: ['ED25519'],
    sizeBytes: record.length,
    createdAt: '',
    expiresAtMs: 0,
    addedAtMs: 0,
  };
}

const one = transaction('01', 'one');
const two = transaction('02', 'two');
const otherTwo = transaction('02', 'two with other metadata');

function headerOf(transactions: readonly PooledTransaction[]) {
  return {
    registerId: 'ab'.repeat(16),
    docketNumber: 1,
    previousHash: '00'.repeat(32),
    timestamp: '2026-11-21T10:00:00.0000000+00:00',
    validatorAddress: 'w1abc',
    transactionIds: transactions.map(({ txId }) => txId),
    merkleRoot: encodeHex(root(transactions.map(({ leaf }) => leaf))),
    logRoot: '00'.repeat(32),
    validatorSetHash: '00'.repeat(32),
    hash: '00'.repeat(32),
    isGenesis: false,
    sizeBytes: 1,
  };
}

const among =
  (...known: readonly PooledTransaction[]) =>
  (txId: string) =>
    known.filter((each) => each.txId === txId);

describe('a docket rebuilt from the log', () => {
  test('has the records that its root names, whichever others have their ids', () => {
    const header = headerOf([one, otherTwo]);
    expect(rebuildDocket(header, among(one, two, otherTwo))?.transactions).toEqual([one, otherTwo]);
    expect(rebuildDocket(header, among(otherTwo, two, one))?.transactions).toEqual([one, otherTwo]);
  });

  test('is undefined when a record is missing', () => {
    const header = headerOf([one, two]);
    expect(rebuildDocket(header, among(one, otherTwo))).toBeUndefined();
    expect(rebuildDocket(header, among(one))).toBeUndefined();
  });
});

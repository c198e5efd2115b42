import { createHash, createPublicKey, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { presign } from '../load.ts';
import { batchOf, judge, requestOf } from './cometbft.ts';

const spkiHead = Buffer.from('302a300506032b6570032100', 'hex');

describe('a transaction for CometBFT', () => {
  it('is the key, the signature, the id and the payload of a submission, and verifies', () => {
    const [submission = ''] = presign('ab'.repeat(16), 1);
    const { TransactionId, Payload } = JSON.parse(submission);
    const { method, params } = JSON.parse(requestOf('broadcast_tx_commit', submission));
    expect(method).toBe('broadcast_tx_commit');
    const tx = Buffer.from(params.tx, 'base64');
    const payload = tx.subarray(128);
    expect(JSON.parse(payload.toString())).toEqual(Payload);
    expect(tx.toString('hex', 96, 128)).toBe(TransactionId);
    const sha256 = (data: string | Buffer) => createHash('sha256').update(data);
    const text = `${TransactionId}:${sha256(payload).digest('hex')}`;
    const key = createPublicKey({
      key: Buffer.concat([spkiHead, tx.subarray(0, 32)]),
      format: 'der',
      type: 'spki',
    });
    expect(verify(null, sha256(text).digest(), key, tx.subarray(32, 96))).toBe(true);
  });

  it('is a list of calls in a batch', () => {
    const calls = JSON.parse(batchOf(presign('ab'.repeat(16), 3)));
    expect(calls.map(({ method }: { method: string }) => method)).toEqual(Array(3).fill('broadcast_tx_sync'));
  });
});

describe('an answer of CometBFT', () => {
  const taken = { jsonrpc: '2.0', id: 1, result: { code: 0, hash: 'AB' } };
  const error = (data: string) => ({ jsonrpc: '2.0', id: 1, error: { message: 'Internal error', data } });

  it('is accepted when all transactions are, also in a block', () => {
    expect(judge(JSON.stringify(taken))).toBe('taken');
    expect(judge(JSON.stringify([taken, taken]))).toBe('taken');
    const sealed = { ...taken, result: { check_tx: { code: 0 }, tx_result: { code: 0 }, height: '4' } };
    expect(judge(JSON.stringify(sealed))).toBe('taken');
  });

  it('is full while the mempool has no room, and any other answer is a failure', () => {
    expect(judge(JSON.stringify(error('mempool is full: number of txs 5000')))).toBe('full');
    expect(() => judge(JSON.stringify([taken, error('tx already exists in cache')]))).toThrow(
      'already exists',
    );
    expect(() => judge(JSON.stringify({ ...taken, result: { code: 1 } }))).toThrow('CometBFT answered');
    expect(() => judge(JSON.stringify({ jsonrpc: '2.0', id: 1 }))).toThrow('CometBFT answered');
  });
});

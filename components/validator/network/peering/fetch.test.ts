import { describe, expect, test } from 'vitest';
import { encodeHex } from '#core/encoding/hex.ts';
import { AppError } from '#core/errors/errors.ts';
import { buildRecord, recordBytes, recordLeaf } from '#core/ledger/record.ts';
import { systemClock } from '#kit/clock/clock.ts';
import { Scheduler } from '#kit/clock/timers.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { SealedTransaction } from '../transport/transport.ts';
import { Fetcher } from './fetch.ts';

const registerId = 'ab'.repeat(16);

function sealed(n: number): SealedTransaction & { readonly txId: string } {
  const txId = n.toString(16).padStart(64, '0');
  const envelope = {
    registerId,
    blueprintId: 'b',
    actionId: '0',
    type: 'Action' as const,
    payloadHash: txId,
    createdAt: '2026-11-21T10:00:00.0000000+00:00',
  };
  const record = buildRecord({
    envelope,
    txId,
    payloadSize: 2,
    senderAddress: 'w1',
    signatures: [{ publicKey: 'AAAA', signatureValue: 'AAAA', algorithm: 'ED25519' }],
    bound: true,
  });
  return { txId, record: recordBytes(record), payload: Buffer.from('{}'), payloadHashForm: 'jcs' };
}

/** A fetcher whose only peer answers like this. */
function fetcherWith(answer: () => Promise<readonly SealedTransaction[]>) {
  const peerScore: string[] = [];
  const fetcher = new Fetcher({
    transport: { fetchRecords: answer, fetchCommit: async () => undefined },
    scheduler: new Scheduler(systemClock()),
    log: testRuntime('validator', { level: 'silent' }).log,
    reportFault: (validatorId, reason) => void peerScore.push(`${validatorId} ${reason}`),
  });
  return { fetcher, peerScore };
}

describe('the answer of another validator', () => {
  const wanted = [sealed(1), sealed(2)];
  const hashes = new Map(wanted.map((each) => [each.txId, encodeHex(recordLeaf(each.record))]));

  test('is used when it was requested', async () => {
    const { fetcher, peerScore } = fetcherWith(async () => wanted);
    const found = await fetcher.records({ registerId, hashes }, ['validator-1']);
    expect([...found.keys()]).toEqual([...hashes.keys()]);
    expect(peerScore).toEqual([]);
  });

  test.each([
    ['unrequested records', [...wanted, sealed(3)]],
    ['the same twice', [...wanted, ...wanted]],
    ['no record', [{ record: Buffer.from('{'), payload: Buffer.from('x'), payloadHashForm: 'jcs' as const }]],
    ['ten thousand of others', Array.from({ length: 10_000 }, (_, n) => sealed(n + 10))],
  ])('counts as a fault when it is %s', async (_what, answer) => {
    const { fetcher, peerScore } = fetcherWith(async () => answer);
    const found = await fetcher.records({ registerId, hashes }, ['validator-1']);
    expect([...found.keys()].every((txId) => hashes.has(txId))).toBe(true);
    expect(new Set(peerScore)).toEqual(new Set(['validator-1 records']));
    expect(peerScore.length).toBeLessThanOrEqual(2);
  });

  test.each(['INVALID_ENVELOPE', 'UNDECODABLE_MESSAGE'])('counts as a fault when it is %s', async (code) => {
    const { fetcher, peerScore } = fetcherWith(async () => {
      throw new AppError('bad_gateway', code, 'nonsense');
    });
    expect(await fetcher.fetchRecords('validator-1', registerId, ['ab'.repeat(32)])).toEqual([]);
    expect(peerScore).toEqual(['validator-1 envelope']);
  });

  test('counts as no fault when it is absent', async () => {
    const { fetcher, peerScore } = fetcherWith(async () => {
      throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'away');
    });
    expect(await fetcher.fetchRecords('validator-1', registerId, ['ab'.repeat(32)])).toEqual([]);
    expect(peerScore).toEqual([]);
  });
});

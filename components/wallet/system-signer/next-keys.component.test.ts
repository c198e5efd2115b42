import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { walletAddress } from '#core/crypto/address.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { voteBytes } from '#core/ledger/attestation.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { openFixture, openReplica, type Replica, type ReplicaOptions } from '../testing/fixture.ts';
import { type Answer, SignerStream, type Wire } from '../testing/signer-stream.ts';

const timestamp = '2026-11-21T12:00:00.0000000+00:00';

function vote(registerId: string, height: bigint, change: Partial<Wire> = {}) {
  const value = {
    type: 2,
    networkId: 'acme',
    registerId,
    height,
    round: 0,
    polRound: -1,
    docketHash: 'aa'.repeat(32),
    merkleRoot: 'bb'.repeat(32),
    logRoot: 'cc'.repeat(32),
    validatorSetHash: 'dd'.repeat(32),
    timestamp,
    ...change,
  } as Wire;
  return { case: 'consensus', value } as const;
}

describe('the keys of one validator', () => {
  let first: Replica & ReplicaOptions;
  let second: Replica;

  beforeAll(async () => {
    first = await openFixture('wallet_next_keys');
    second = await openReplica(first);
  });
  afterAll(async () => {
    await second.close();
    await first.close();
  });

  async function opened(replica: Replica, validatorId: string) {
    const stream = new SignerStream(replica, validatorId);
    const answer = await stream.open(validatorId);
    expect(answer.case).toBe('opened');
    return { stream, newest: answer.value?.newestKey?.publicKey ?? '' };
  }

  const next = async (stream: SignerStream, afterPublicKey: string) =>
    (await stream.send({ case: 'nextKey', value: { afterPublicKey } })).value?.publicKey ?? '';

  const verifies = (publicKey: string, bytes: Uint8Array, answer: Answer) =>
    first.deps.verifier.verify({
      algorithm: 'ED25519',
      publicKey: decodeBase64Any(publicKey),
      message: bytes,
      signature: answer.value?.signature ?? new Uint8Array(),
    });

  test('a repeated request for the successor gives the same key, on any replica and after a restart', async () => {
    const { stream, newest: one } = await opened(first, 'validator-0');
    const two = await next(stream, one);
    const three = await next(stream, two);
    expect(new Set([one, two, three]).size).toBe(3);
    expect(await next(stream, one)).toBe(two);
    await stream.close();
    const later = await opened(second, 'validator-0');
    expect(later.newest).toBe(three);
    expect(await next(later.stream, one)).toBe(two);
    await later.stream.close();
  });

  test('concurrent requests to two replicas create one key', async () => {
    const { stream, newest } = await opened(first, 'validator-1');
    const requests = Array.from({ length: 8 }, () => next(stream, newest));
    expect(new Set(await Promise.all(requests)).size).toBe(1);
    await stream.close();
  });

  test('the named key signs with its own address; without a name the first key signs', async () => {
    const registerId = randomBytes(16).toString('hex');
    const { stream, newest: one } = await opened(first, 'validator-2');
    const two = await next(stream, one);
    const facts = { docketHash: 'aa'.repeat(32), approved: false, timestamp };
    const address = walletAddress('ED25519', decodeBase64Any(two));
    const rejected = await stream.send({ case: 'attestation', value: { registerId, ...facts } }, two);
    expect(verifies(two, voteBytes({ ...facts, validatorAddress: address }), rejected)).toBe(true);
    expect(verifies(two, voteBytes({ ...facts, approved: true, validatorAddress: address }), rejected)).toBe(
      false,
    );
    const possession = { registerId, validatorId: 'validator-2' };
    for (const [named, publicKey] of [
      [two, two],
      [one, one],
      ['', one],
    ] as const) {
      const proof = await stream.send({ case: 'possession', value: { registerId } }, named);
      expect(verifies(publicKey, possessionBytes({ ...possession, publicKey }), proof)).toBe(true);
    }
    await stream.close();
  });

  test('all keys share one guard: another key gets no second signature at a signed position', async () => {
    const registerId = randomBytes(16).toString('hex');
    const { stream, newest: one } = await opened(first, 'validator-3');
    const two = await next(stream, one);
    expect((await stream.send(vote(registerId, 7n), one)).case).toBe('signed');
    const other = vote(registerId, 7n, { docketHash: 'ee'.repeat(32) });
    expect(await stream.send(other, two)).toMatchObject({ value: { code: 'DOUBLE_SIGN_REFUSED' } });
    expect(await stream.send(vote(registerId, 6n), two)).toMatchObject({
      value: { code: 'DOUBLE_SIGN_REFUSED' },
    });
    expect((await stream.send(vote(registerId, 8n), two)).case).toBe('signed');
    await stream.close();
  });

  test('a key of another validator and an unknown key neither sign nor have a successor', async () => {
    const registerId = randomBytes(16).toString('hex');
    const { stream: other, newest: foreign } = await opened(first, 'validator-4');
    const longer = await opened(first, 'validator-44');
    const { stream } = await opened(first, 'validator-5');
    for (const key of [foreign, longer.newest, randomBytes(32).toString('base64'), 'nonsense']) {
      const refused = { case: 'refusal', value: { code: 'SIGNING_KEY_UNKNOWN' } };
      expect(await stream.send(vote(registerId, 1n), key)).toMatchObject(refused);
      expect(await stream.send({ case: 'nextKey', value: { afterPublicKey: key } })).toMatchObject(refused);
    }
    expect((await stream.send(vote(registerId, 1n))).case).toBe('signed');
    for (const each of [other, longer.stream, stream]) await each.close();
  });

  test('a fenced stream creates no key', async () => {
    const { stream: old, newest } = await opened(first, 'validator-6');
    const { stream: young } = await opened(second, 'validator-6');
    const refused = await old.send({ case: 'nextKey', value: { afterPublicKey: newest } });
    expect(refused).toMatchObject({ case: 'refusal', value: { code: 'SIGNER_FENCED' } });
    await old.done;
    await young.close();
  });
});

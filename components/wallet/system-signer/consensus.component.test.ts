import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { walletAddress } from '#core/crypto/address.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { voteBytes } from '#core/ledger/attestation.ts';
import { checkpointBody, checkpointOrigin, cosignatureBytes } from '#core/ledger/checkpoint.ts';
import { signBytes } from '#core/ledger/consensus.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { openFixture, openReplica, type Replica, type ReplicaOptions } from '../testing/fixture.ts';
import { type Answer, type Message, SignerStream, type Wire } from '../testing/signer-stream.ts';
import { openSigner, signConsensus } from './sign-consensus.ts';

const SET = randomBytes(32).toString('hex');

function message(registerId: string, change: Partial<Wire> = {}): Wire & { height: bigint } {
  return {
    type: 2,
    networkId: 'acme',
    registerId,
    height: 7n,
    round: 0,
    polRound: -1,
    docketHash: 'aa'.repeat(32),
    merkleRoot: 'bb'.repeat(32),
    logRoot: 'cc'.repeat(32),
    validatorSetHash: SET,
    timestamp: '2026-11-21T12:00:00.0000000+00:00',
    ...change,
  } as Wire & { height: bigint };
}

function newRegister(): string {
  return randomBytes(16).toString('hex');
}

describe('signing component, docket path', () => {
  let first: Replica & ReplicaOptions;
  let second: Replica;

  beforeAll(async () => {
    first = await openFixture('wallet_consensus');
    second = await openReplica(first);
  });

  afterAll(async () => {
    await second.close();
    await first.close();
  });

  async function opened(replica: Replica, validatorId: string): Promise<SignerStream> {
    const stream = new SignerStream(replica, validatorId);
    expect((await stream.open(validatorId)).case).toBe('opened');
    return stream;
  }

  async function storedKey(validatorId: string): Promise<Buffer> {
    const row = await first.db.read
      .selectFrom('wallets')
      .select(['public_key', 'address'])
      .where('system_identity', '=', validatorId)
      .executeTakeFirstOrThrow();
    expect(walletAddress('ED25519', row.public_key)).toBe(row.address);
    return row.public_key;
  }

  test('builds the bytes from the fields and signs each kind of message with the identity key', async () => {
    const registerId = newRegister();
    const stream = await opened(first, 'validator-0');
    const publicKey = await storedKey('validator-0');
    const verify = (bytes: Uint8Array, answer: Answer) =>
      first.deps.verifier.verify({
        algorithm: 'ED25519',
        publicKey,
        message: bytes,
        signature: answer.value?.signature ?? new Uint8Array(),
      });
    const wire = message(registerId);
    const docket = { docketHash: 'aa'.repeat(32), merkleRoot: 'bb'.repeat(32), logRoot: 'cc'.repeat(32) };
    const facts = {
      type: 2,
      networkId: 'acme',
      registerId,
      height: 7,
      round: 0,
      polRound: -1,
      validatorSetHash: SET,
      timestamp: '2026-11-21T12:00:00.0000000+00:00',
    } as const;
    expect(verify(signBytes({ ...facts, docket }), await stream.vote(wire))).toBe(true);
    const nil = message(registerId, { round: 1, docketHash: '', merkleRoot: '', logRoot: '' });
    expect(verify(signBytes({ ...facts, round: 1, docket: undefined }), await stream.vote(nil))).toBe(true);

    const vote = { docketHash: docket.docketHash, approved: true, timestamp: facts.timestamp };
    const attested = await stream.send({ case: 'attestation', value: { registerId, ...vote } });
    const validatorAddress = walletAddress('ED25519', publicKey);
    expect(verify(voteBytes({ ...vote, validatorAddress }), attested)).toBe(true);

    const possession = await stream.send({ case: 'possession', value: { registerId } });
    const proof = { registerId, validatorId: 'validator-0', publicKey: publicKey.toString('base64') };
    expect(verify(possessionBytes(proof), possession)).toBe(true);

    const position = { networkId: 'acme', size: 9n, rootHash: randomBytes(32), timeSeconds: 1_795_000_000n };
    const cosigned = await stream.send({ case: 'cosignature', value: { registerId, ...position } });
    const origin = checkpointOrigin('acme', registerId);
    const body = checkpointBody({ origin, size: 9, rootHash: position.rootHash });
    expect(verify(cosignatureBytes(body, 1_795_000_000), cosigned)).toBe(true);
    await stream.close();
    expect(first.runtime.lines.filter((line) => line['msg'] === 'docket signature')).toHaveLength(5);
  });

  test('same position with another digest and every lower position are refused, the same message is not', async () => {
    const registerId = newRegister();
    const stream = await opened(first, 'validator-1');
    const wire = message(registerId, { height: 10n, round: 3, type: 2 });
    const signed = await stream.vote(wire);
    expect(signed.case).toBe('signed');
    expect((await stream.vote(wire)).value?.signature).toEqual(signed.value?.signature);
    const conflicts: Partial<Wire>[] = [
      { docketHash: 'dd'.repeat(32) },
      { timestamp: '2026-11-21T12:00:00.0000010+00:00' },
      { docketHash: '', merkleRoot: '', logRoot: '' },
      { type: 1 },
      { round: 2, type: 3 },
      { height: 9n, round: 9, type: 3 },
      { registerId: registerId.toUpperCase(), docketHash: 'dd'.repeat(32) },
    ];
    for (const change of conflicts) {
      const answer = await stream.vote({ ...wire, ...change } as Wire);
      expect(answer).toMatchObject({ case: 'refusal', value: { code: 'DOUBLE_SIGN_REFUSED' } });
    }
    for (const change of [{ type: 3 }, { round: 4, type: 1 }, { height: 11n, round: 0, type: 1 }]) {
      expect((await stream.vote({ ...wire, ...change } as Wire)).case).toBe('signed');
    }
    await stream.close();
    const rows = await first.db.read
      .selectFrom('signing_audit')
      .selectAll()
      .where('register_id', '=', registerId)
      .execute();
    expect(rows).toHaveLength(conflicts.length);
    expect(new Set(rows.map((row) => row.reason))).toEqual(new Set(['DOUBLE_SIGN_REFUSED']));
  });

  test('a newer stream fences the older one, on another replica too; the old one gets SIGNER_FENCED and ends', async () => {
    const registerId = newRegister();
    const old = await opened(first, 'validator-2');
    expect((await old.vote(message(registerId))).case).toBe('signed');
    const young = await opened(second, 'validator-2');
    const refused = await old.vote(message(registerId, { height: 8n }));
    expect(refused).toMatchObject({ case: 'refusal', value: { code: 'SIGNER_FENCED' } });
    await old.done;
    expect((await young.vote(message(registerId, { height: 8n }))).case).toBe('signed');
    for (const kind of ['attestation', 'possession'] as const) {
      const stale = await opened(first, 'validator-2');
      const fresh = await opened(second, 'validator-2');
      const value = {
        registerId,
        docketHash: 'aa'.repeat(32),
        approved: true,
        timestamp: message(registerId).timestamp,
      };
      const answer = await stale.send({ case: kind, value } as Message);
      expect(answer).toMatchObject({ case: 'refusal', value: { code: 'SIGNER_FENCED' } });
      await stale.done;
      await fresh.close();
    }
    await young.close();
  });

  test('of two streams that race at one position at most one digest is signed', async () => {
    const left = await opened(first, 'validator-3');
    for (let height = 1n; height <= 40n; height += 1n) {
      const registerId = newRegister();
      const right = await opened(second, 'validator-3');
      const again = await opened(first, 'validator-3');
      const answers = await Promise.all(
        [right, again].map((stream, i) =>
          stream.vote(message(registerId, { height, docketHash: `${i + 1}`.repeat(64) })),
        ),
      );
      const signatures = new Set(
        answers.flatMap((answer) =>
          answer.case === 'signed' ? [Buffer.from(answer.value?.signature ?? []).toString('hex')] : [],
        ),
      );
      expect(signatures.size).toBeLessThanOrEqual(1);
      await Promise.all([right.close(), again.close()]);
    }
    await left.close();
  });

  test('forty conflicting messages at once on one stream of one epoch: one signature', async () => {
    const registerId = newRegister();
    const caller = {
      spiffeId: 'x',
      clientId: 'validator-4',
      subject: 's',
      service: true,
      canSignSystem: true,
    };
    const stream = await opened(first, 'validator-4');
    const signer = await openSigner(first.deps, caller, { validatorId: 'validator-4', epoch: 0n });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, i) =>
        signConsensus((i % 2 === 0 ? first : second).deps, signer, [
          {
            type: 3,
            height: 5,
            networkId: 'acme',
            round: 0,
            polRound: -1,
            validatorSetHash: SET,
            timestamp: '2026-11-21T12:00:00.0000000+00:00',
            docket: {
              docketHash: i.toString(16).padStart(64, '0'),
              merkleRoot: 'bb'.repeat(32),
              logRoot: 'cc'.repeat(32),
            },
            registerId,
          },
        ]),
      ),
    );
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ code: 'DOUBLE_SIGN_REFUSED' });
    }
    await stream.close();
  });

  test('many registers share one stream; each answer carries the id of its request', async () => {
    const stream = await opened(first, 'validator-5');
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => stream.vote(message(newRegister(), { height: BigInt(i) }))),
    );
    expect(answers.every((answer) => answer.case === 'signed')).toBe(true);
    await stream.close();
  });

  test('two streams that open an identity for the first time get one key', async () => {
    const streams = Array.from(
      { length: 6 },
      (_, i) => new SignerStream(i % 2 === 0 ? first : second, 'validator-new'),
    );
    const answers = await Promise.all(streams.map((stream) => stream.open('validator-new')));
    const keys = new Set(answers.map((answer) => JSON.stringify((answer.value as { key?: unknown }).key)));
    expect(keys.size).toBe(1);
    const epochs = answers.map((answer) => Number(answer.value?.epoch)).sort((a, b) => a - b);
    expect(epochs).toEqual([1, 2, 3, 4, 5, 6]);
    await Promise.all(streams.map((stream) => stream.close()));
  });

  test('a stream that opens again keeps its epoch, unless a newer one was taken in the meantime', async () => {
    const epochOf = async (replica: Replica, held: bigint) => {
      const stream = new SignerStream(replica, 'validator-cut');
      const { case: kind, value } = await stream.open('validator-cut', held);
      await stream.close();
      return kind === 'refusal' ? value?.code : value?.epoch;
    };
    expect(await epochOf(first, 0n)).toBe(1n);
    expect(await epochOf(second, 1n)).toBe(1n);
    expect(await epochOf(second, 0n)).toBe(2n);
    expect(await epochOf(first, 1n)).toBe('SIGNER_FENCED');
    expect(await epochOf(first, 2n)).toBe(2n);
    // a held epoch above the stored one, as after a restore of an older database
    expect(await epochOf(second, 3n)).toBe(3n);
    expect(await epochOf(first, 2n)).toBe('SIGNER_FENCED');
  });

  test.each([
    ['another identity', 'validator-0', 'validator-1', true],
    ['no claim', 'validator-0', 'validator-0', false],
    ['the register service', 'service-register', 'service-register', true],
    ['the register service posing as a validator', 'service-register', 'validator-0', true],
  ] as const)(
    '%s may not open a signer; the refusal has a row',
    async (_name, clientId, validatorId, canSignSystem) => {
      const count = async () =>
        Number(
          (
            await first.db.pool.query(`SELECT count(*) FROM signing_audit WHERE caller LIKE $1`, [
              `%/${clientId}`,
            ])
          ).rows[0].count,
        );
      const before = await count();
      const stream = new SignerStream(first, clientId, canSignSystem);
      expect(await stream.open(validatorId)).toMatchObject({
        case: 'refusal',
        value: { code: 'SIGNING_NOT_ALLOWED' },
      });
      await stream.done;
      expect(await count()).toBe(before + 1);
    },
  );

  test('messages before the open, a second open and values out of range are refused', async () => {
    const registerId = newRegister();
    const early = new SignerStream(first, 'validator-6');
    expect(await early.vote(message(registerId))).toMatchObject({ value: { code: 'INVALID_REQUEST' } });
    await early.done;
    const stream = await opened(first, 'validator-6');
    const wrong: Partial<Wire>[] = [
      { type: 0 },
      { type: 4 },
      { height: 2n ** 53n },
      { round: 2 ** 31 },
      { polRound: 0 },
      { type: 1, docketHash: '', merkleRoot: '', logRoot: '' },
      { docketHash: '' },
      { merkleRoot: 'zz'.repeat(32) },
      { registerId: 'short' },
      { validatorSetHash: '' },
      { timestamp: 'now' },
      { networkId: 'x'.repeat(70_000) },
    ];
    for (const change of wrong) {
      expect(await stream.vote({ ...message(registerId), ...change } as Wire)).toMatchObject({
        case: 'refusal',
        value: { code: 'INVALID_REQUEST' },
      });
    }
    expect(await stream.open('validator-6')).toMatchObject({ value: { code: 'INVALID_REQUEST' } });
    expect(await stream.send({ case: undefined })).toMatchObject({ value: { code: 'INVALID_REQUEST' } });
    const bad = {
      registerId,
      docketHash: 'aa|w1x',
      approved: true,
      timestamp: message(registerId).timestamp,
    };
    expect(await stream.send({ case: 'attestation', value: bad } as Message)).toMatchObject({
      value: { code: 'INVALID_REQUEST' },
    });
    const rows = await first.db.read
      .selectFrom('signing_guard')
      .selectAll()
      .where('register_id', '=', registerId)
      .execute();
    expect(rows).toEqual([]);
    expect((await stream.vote(message(registerId))).case).toBe('signed');
    await stream.close();
  });

  test('for every order of requests the signed positions only rise', async () => {
    const stream = await opened(first, 'validator-7');
    const ask = fc.record({
      height: fc.integer({ min: 1, max: 4 }),
      round: fc.integer({ min: 0, max: 3 }),
      type: fc.constantFrom(2, 3),
      content: fc.constantFrom('a', 'b'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(ask, { maxLength: 25 }), async (asks) => {
        const registerId = newRegister();
        let last = { rank: -1, content: '' };
        for (const { height, round, type, content } of asks) {
          const change = { height: BigInt(height), round, type, docketHash: content.repeat(64) };
          const answer = await stream.vote(message(registerId, change));
          const rank = height * 100 + round * 10 + type;
          const again = rank === last.rank && content === last.content;
          expect(answer.case === 'signed').toBe(rank > last.rank || again);
          if (answer.case === 'signed') last = { rank, content };
        }
      }),
      { numRuns: 25 },
    );
    await stream.close();
  });

  test('without the database nothing is signed and the stream ends with an error', async () => {
    const lost = await openReplica(first);
    const stream = await opened(lost, 'validator-8');
    const registerId = newRegister();
    expect((await stream.vote(message(registerId))).case).toBe('signed');
    await lost.close();
    void stream.vote(message(registerId, { height: 8n }));
    await expect(stream.done).rejects.toThrow();
    const back = await opened(first, 'validator-8');
    const other = message(registerId, { height: 8n, docketHash: 'dd'.repeat(32) });
    expect((await back.vote(other)).case).toBe('signed');
    await back.close();
  });

  test('the key is the same after all caches are cleared', async () => {
    const third = await openReplica(first);
    const before = await storedKey('validator-0');
    const stream = new SignerStream(third, 'validator-0');
    const answer = (await stream.open('validator-0')) as { value: { key: { publicKey: string } } };
    expect(Buffer.from(decodeBase64Any(answer.value.key.publicKey)).equals(before)).toBe(true);
    await stream.close();
    await third.close();
  });
});

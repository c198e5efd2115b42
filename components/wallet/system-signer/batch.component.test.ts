import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { walletAddress } from '#core/crypto/address.ts';
import { voteBytes } from '#core/ledger/attestation.ts';
import { signBytes } from '#core/ledger/consensus.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { consensusMessage, newRegister, type Place, timestamp, wire } from '../testing/consensus-messages.ts';
import { openFixture, openReplica, type Replica, type ReplicaOptions } from '../testing/fixture.ts';
import { SignerStream, type Wire } from '../testing/signer-stream.ts';

const at = (type: number, docket = 'a', round = 0): Place => ({ height: 7, round, type, docket });

describe('messages that are signed together', () => {
  let first: Replica & ReplicaOptions;
  let second: Replica;

  beforeAll(async () => {
    first = await openFixture('wallet_batches');
    second = await openReplica(first);
  });

  afterAll(async () => {
    await second.close();
    await first.close();
  });

  async function opened(validatorId: string, replica: Replica = first): Promise<SignerStream> {
    const stream = new SignerStream(replica, validatorId);
    expect(await stream.open(validatorId)).toMatchObject({ case: 'opened', value: { signsBatches: true } });
    return stream;
  }

  const batchOf = (registerId: string, places: readonly Place[]) =>
    ({ case: 'batch', value: { messages: places.map((place) => wire(registerId, place)) } }) as const;

  const all = [at(1), at(2), at(3)];
  const refused = { case: 'refusal', value: { code: 'DOUBLE_SIGN_REFUSED' } };

  async function rowsOf(registerId: string) {
    return first.db.read
      .selectFrom('signing_guard')
      .selectAll()
      .where('register_id', '=', registerId)
      .execute();
  }

  test('every signature verifies, that of the attestation too, and one row holds all', async () => {
    const registerId = newRegister();
    const stream = await opened('validator-0');
    const docketHash = 'a'.repeat(64);
    const answer = await stream.send({
      case: 'batch',
      value: {
        messages: all.map((place) => wire(registerId, place)),
        attestation: { registerId, docketHash, approved: true, timestamp },
      },
    });
    const { public_key: publicKey } = await first.db.read
      .selectFrom('wallets')
      .select('public_key')
      .where('system_identity', '=', 'validator-0')
      .executeTakeFirstOrThrow();
    const verify = (message: Uint8Array, signature: Uint8Array = new Uint8Array()) =>
      first.deps.verifier.verify({ algorithm: 'ED25519', publicKey, message, signature });
    for (const [index, place] of all.entries()) {
      const bytes = signBytes(consensusMessage(registerId, place));
      expect(verify(bytes, answer.value?.signatures?.[index])).toBe(true);
    }
    const validatorAddress = walletAddress('ED25519', publicKey);
    const vote = voteBytes({ docketHash, validatorAddress, approved: true, timestamp });
    expect(verify(vote, answer.value?.attestationSignature)).toBe(true);
    expect(await rowsOf(registerId)).toMatchObject([{ height: 7, round: 0, first_step: 1, step: 3 }]);
    await stream.close();
  });

  test('each message may be repeated, alone, together and on another replica; anything else is refused', async () => {
    const registerId = newRegister();
    const stream = await opened('validator-1');
    const signatures = (await stream.send(batchOf(registerId, all))).value?.signatures ?? [];
    expect(signatures).toHaveLength(3);
    const other = await opened('validator-1', second);
    for (const [index, place] of all.entries()) {
      expect((await other.vote(wire(registerId, place))).value?.signature).toEqual(signatures[index]);
    }
    for (const places of [all, all.slice(0, 2), all.slice(1)]) {
      const again = await other.send(batchOf(registerId, places));
      expect(again.value?.signatures).toEqual(places.map((place) => signatures[all.indexOf(place)]));
    }
    const conflicts = [
      all.map((place) => ({ ...place, docket: 'd' })),
      [at(1, 'd'), at(2, 'd')],
      [at(3, 'd')],
      all.map((place) => ({ ...place, height: 6 })),
    ];
    for (const places of conflicts)
      expect(await other.send(batchOf(registerId, places))).toMatchObject(refused);
    expect(await other.vote(wire(registerId, at(2, 'd')))).toMatchObject(refused);
    expect(await other.vote(wire(registerId, at(2, 'a', 1)))).toMatchObject({ case: 'signed' });
    expect(await other.vote(wire(registerId, at(3)))).toMatchObject(refused);
    expect(await other.send(batchOf(registerId, all))).toMatchObject(refused);
    await Promise.all([stream.close(), other.close()]);
  });

  test('a batch of which nothing is above the position signs nothing', async () => {
    const registerId = newRegister();
    const stream = await opened('validator-2');
    await stream.vote(wire(registerId, at(2, 'd')));
    const before = await rowsOf(registerId);
    expect(await stream.send(batchOf(registerId, all))).toMatchObject(refused);
    expect(await rowsOf(registerId)).toEqual(before);
    expect(await stream.vote(wire(registerId, at(3, 'd')))).toMatchObject({ case: 'signed' });
    await stream.close();
  });

  test('messages that do not belong together are refused, and nothing is stored', async () => {
    const registerId = newRegister();
    const stream = await opened('validator-3');
    const batches: readonly (readonly Wire[])[] = [
      [],
      [...all, at(3)].map((place) => wire(registerId, place)),
      [at(2), at(1)].map((place) => wire(registerId, place)),
      [at(1), at(1)].map((place) => wire(registerId, place)),
      [at(1), at(2, 'b')].map((place) => wire(registerId, place)),
      [at(1), at(2, 'a', 1)].map((place) => wire(registerId, place)),
      [wire(registerId, at(1)), wire(newRegister(), at(2))],
      [wire(registerId, at(1)), wire(registerId, at(2), { networkId: 'other' })],
      [wire(registerId, at(1)), wire(registerId, at(2), { validatorSetHash: '0'.repeat(64) })],
      [wire(registerId, at(1)), wire(registerId, at(2), { merkleRoot: '0'.repeat(64) })],
      [wire(registerId, at(1)), wire(registerId, at(2), { timestamp: 'now' })],
      [wire(registerId, at(2)), wire(registerId, at(3), { docketHash: '', merkleRoot: '', logRoot: '' })],
    ];
    for (const messages of batches) {
      const answer = await stream.send({ case: 'batch', value: { messages: [...messages] } });
      expect(answer).toMatchObject({ case: 'refusal', value: { code: 'INVALID_REQUEST' } });
    }
    const attestations = [
      { registerId, docketHash: 'b'.repeat(64), approved: true, timestamp },
      { registerId, docketHash: 'a'.repeat(64), approved: false, timestamp },
      { registerId: newRegister(), docketHash: 'a'.repeat(64), approved: true, timestamp },
      { registerId, docketHash: 'a'.repeat(64), approved: true, timestamp: 'now' },
    ];
    for (const attestation of attestations) {
      const { value } = batchOf(registerId, all);
      const answer = await stream.send({ case: 'batch', value: { ...value, attestation } });
      expect(answer).toMatchObject({ case: 'refusal', value: { code: 'INVALID_REQUEST' } });
    }
    expect(await rowsOf(registerId)).toEqual([]);
    await stream.close();
  });

  test('a fenced stream signs no batch', async () => {
    const registerId = newRegister();
    const old = await opened('validator-4');
    const young = await opened('validator-4', second);
    expect(await old.send(batchOf(registerId, all))).toMatchObject({ value: { code: 'SIGNER_FENCED' } });
    await old.done;
    expect(await young.send(batchOf(registerId, all))).toMatchObject({ case: 'batch' });
    await young.close();
  });

  test('a connection that is cut while a statement runs leaves all or nothing of its batches', async () => {
    const replica = await openReplica(first);
    const stream = await opened('validator-5', replica);
    const [held, free] = [newRegister(), newRegister()];
    await stream.vote(wire(held, { ...at(1), height: 1 }));
    const blocker = await first.db.pool.connect();
    await blocker.query('BEGIN');
    await blocker.query('SELECT 1 FROM wallet.signing_guard WHERE register_id = $1 FOR UPDATE', [held]);
    void stream.send(batchOf(held, all));
    const waiting = `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%signing_guard AS g%'`;
    const pid = await waitFor(async () => (await first.db.pool.query(waiting)).rows[0]?.pid);
    void stream.send(batchOf(free, all));
    await first.db.pool.query('SELECT pg_terminate_backend($1)', [pid]);
    await expect(stream.done).rejects.toThrow();
    await blocker.query('ROLLBACK');
    blocker.release();
    expect(await rowsOf(held)).toMatchObject([{ height: 1, step: 1 }]);
    const again = await opened('validator-5');
    for (const registerId of [held, free]) {
      const signed = await again.send(batchOf(registerId, all));
      expect(signed.value?.signatures).toHaveLength(3);
      expect((await again.send(batchOf(registerId, all))).value?.signatures).toEqual(
        signed.value?.signatures,
      );
    }
    await again.close();
    await replica.close();
  });
});

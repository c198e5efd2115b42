import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { sha256 } from '#core/crypto/hash.ts';
import { createSigner, type Signer } from '#core/crypto/sign.ts';
import { loadEd25519 } from './ed25519.ts';
import { createVerifyPool, type VerifyItem, type VerifyPool } from './verify-pool.ts';

function rsaKey(): Uint8Array {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4096 });
  return createPrivateKey(privateKey.export({ format: 'pem', type: 'pkcs8' })).export({
    format: 'der',
    type: 'pkcs8',
  });
}

const ed25519 = createSigner({ algorithm: 'ED25519', privateKey: new Uint8Array(32).fill(1) });
const p256 = createSigner({ algorithm: 'NISTP256', privateKey: new Uint8Array(32).fill(2) });
const rsa = createSigner({ algorithm: 'RSA-4096', privateKey: rsaKey() });

function item(signer: Signer, text: string, withPreimage = false): VerifyItem {
  const { algorithm, publicKey } = signer;
  const preimage = Buffer.from(text);
  const digest = sha256(preimage);
  const signed = { algorithm, publicKey, digest, signature: signer.signDigest(digest) };
  return withPreimage ? { ...signed, preimage } : signed;
}

const good = Array.from({ length: 200 }, (_, index) => item(ed25519, `text ${index}`));
const mixed: readonly (readonly [VerifyItem, boolean])[] = [
  ...good.map((each, index): readonly [VerifyItem, boolean] =>
    index % 7 === 3 ? [{ ...each, digest: sha256('another') }, false] : [each, true],
  ),
  [item(p256, 'p', true), true],
  [item(p256, 'p'), true],
  [{ ...item(p256, 'p', true), preimage: Buffer.from('q') }, false],
  [{ ...item(p256, 'p'), digest: sha256('q') }, false],
  [item(rsa, 'r', true), true],
  [item(rsa, 'r'), true],
  [{ ...item(rsa, 'r'), digest: sha256('q') }, false],
  [{ ...item(ed25519, 'e'), algorithm: 'NISTP256' }, false],
  [{ ...item(ed25519, 'e'), signature: new Uint8Array(63) }, false],
  [{ ...item(ed25519, 'e'), publicKey: new Uint8Array(31) }, false],
  [{ ...item(ed25519, 'e'), digest: new Uint8Array(31) }, false],
  [{ ...item(ed25519, 'e'), publicKey: new Uint8Array(32) }, false],
];

const pools: VerifyPool[] = [];
function poolOf(options: Parameters<typeof createVerifyPool>[0]): VerifyPool {
  const pool = createVerifyPool(options);
  pools.push(pool);
  return pool;
}
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.close()));
});

const backends = loadEd25519().name === 'sodium' ? (['node', 'sodium'] as const) : (['node'] as const);

describe.each(backends)('verify pool by %s', (backend) => {
  it.each([0, 1, 2])('answers in order with %i workers', async (workers) => {
    const pool = poolOf({ workers, backend, recordsPerMessage: 16 });
    expect(pool.backend).toBe(backend);
    const answers = await pool.verifyBatch(mixed.map(([each]) => each));
    expect(answers).toEqual(mixed.map(([, expected]) => expected));
  });

  it('keeps concurrent batches apart, and does not change the bytes that it was given', async () => {
    const pool = poolOf({ workers: 2, backend });
    const before = good.map((each) => Buffer.from(each.signature).toString('hex'));
    const batches = Array.from({ length: 12 }, (_, index) => mixed.slice(index, index + 40));
    const answers = await Promise.all(batches.map((batch) => pool.verifyBatch(batch.map(([each]) => each))));
    expect(answers).toEqual(batches.map((batch) => batch.map(([, expected]) => expected)));
    expect(good.map((each) => Buffer.from(each.signature).toString('hex'))).toEqual(before);
  });
});

describe('limits', () => {
  it('an empty batch and a small one need no thread', async () => {
    const pool = poolOf({ workers: 1 });
    expect(await pool.verifyBatch([])).toEqual([]);
    expect(await pool.verifyBatch(good.slice(0, 1))).toEqual([true]);
  });

  it('refuses what would exceed the queue, and continues with the rest', async () => {
    const pool = poolOf({ workers: 1, maxQueued: 100 });
    const first = pool.verifyBatch(good.slice(0, 90));
    await expect(pool.verifyBatch(good.slice(0, 20))).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'VERIFY_POOL_FULL',
    });
    expect((await first).every(Boolean)).toBe(true);
    expect((await pool.verifyBatch(good.slice(0, 100))).every(Boolean)).toBe(true);
  });

  it('close rejects waiting batches and later ones', async () => {
    const pool = poolOf({ workers: 1 });
    const waiting = pool.verifyBatch(good);
    const closing = pool.close();
    await expect(waiting).rejects.toMatchObject({ code: 'VERIFY_POOL_CLOSED' });
    await closing;
    await expect(pool.verifyBatch(good)).rejects.toMatchObject({ code: 'VERIFY_POOL_CLOSED' });
  });

  it('gives a thread the next records before it has answered the last ones', async () => {
    // Answers the first of two messages only when it has received both.
    const patient = `
      import { parentPort } from 'node:worker_threads';
      const given = [];
      parentPort.on('message', (buffer) => {
        given.push(new Uint8Array(buffer.byteLength / 128).fill(1));
        if (given.length % 2 === 0) for (const results of given.splice(0)) parentPort.postMessage(results);
      });`;
    const workerUrl = new URL(`data:text/javascript,${encodeURIComponent(patient)}`);
    const pool = poolOf({ workers: 1, recordsPerMessage: 4, workerUrl });
    expect(await pool.verifyBatch(good.slice(0, 8))).toEqual(Array(8).fill(true));
  });

  it('verifies in the calling thread when threads die', async () => {
    const pool = poolOf({ workers: 2, workerUrl: new URL('data:text/javascript,process.exit(1)') });
    expect(await pool.verifyBatch(mixed.map(([each]) => each))).toEqual(
      mixed.map(([, expected]) => expected),
    );
  });
});

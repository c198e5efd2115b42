import type { Verifier } from '#core/crypto/verify.ts';

/** Bytes of one packed Ed25519 record: key 32, signature 64, digest 32. */
const RECORD_BYTES = 128;

interface PackableItem {
  readonly publicKey: Uint8Array;
  readonly signature: Uint8Array;
  readonly digest: Uint8Array;
}

/** Whether the parts of an Ed25519 item fill a record exactly; anything else cannot verify. */
export function isPackable(item: PackableItem): boolean {
  return item.publicKey.length === 32 && item.signature.length === 64 && item.digest.length === 32;
}

/** Packs items one after the other into memory of their own, which can be transferred to a thread. */
export function packRecords(items: readonly PackableItem[]): Uint8Array<ArrayBuffer> {
  const packed = new Uint8Array(items.length * RECORD_BYTES);
  for (const [index, item] of items.entries()) {
    const start = index * RECORD_BYTES;
    packed.set(item.publicKey, start);
    packed.set(item.signature, start + 32);
    packed.set(item.digest, start + 96);
  }
  return packed;
}

/** One byte a record: 1 where the signature verifies. */
export function verifyPacked(verifier: Verifier, packed: Uint8Array): Uint8Array<ArrayBuffer> {
  const results = new Uint8Array(packed.length / RECORD_BYTES);
  for (let index = 0; index < results.length; index += 1) {
    const record = packed.subarray(index * RECORD_BYTES, (index + 1) * RECORD_BYTES);
    const verified = verifier.verifyDigest({
      algorithm: 'ED25519',
      publicKey: record.subarray(0, 32),
      signature: record.subarray(32, 96),
      digest: record.subarray(96),
    });
    results[index] = verified ? 1 : 0;
  }
  return results;
}

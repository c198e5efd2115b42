import { parentPort } from 'node:worker_threads';
import { loadEd25519 } from '#kit/crypto/ed25519.ts';

const { backend } = loadEd25519();

/** Verifies packed records of 128 bytes: key 32, signature 64, digest 32. Answers one byte a record. */
parentPort?.on('message', (packed: Uint8Array) => {
  const results = new Uint8Array(packed.length / 128);
  for (let index = 0; index < results.length; index++) {
    const start = index * 128;
    const [key, signature, digest] = [
      packed.subarray(start, start + 32),
      packed.subarray(start + 32, start + 96),
      packed.subarray(start + 96, start + 128),
    ];
    results[index] = backend.verify(key, digest, signature) ? 1 : 0;
  }
  parentPort?.postMessage(results, [results.buffer]);
});

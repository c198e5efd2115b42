import { parentPort, workerData } from 'node:worker_threads';
import { createVerifier } from '#core/crypto/verify.ts';
import { loadEd25519 } from './ed25519.ts';
import { verifyPacked } from './packed-records.ts';

// Entry of a worker thread of the verify pool: packed records in, one byte a record out, both transferred without
// copying.
const choice: unknown = workerData;
const verifier = createVerifier(loadEd25519(choice === 'sodium' ? 'sodium' : 'node').backend);

parentPort?.on('message', (buffer: ArrayBuffer) => {
  const results = verifyPacked(verifier, new Uint8Array(buffer));
  parentPort?.postMessage(results, [results.buffer]);
});

import { Worker } from 'node:worker_threads';

/** Bytes of one check: key 32, signature 64, digest 32. */
export const checkBytes = 128;

/** Verifies packed checks in worker threads; throws when one fails. */
export function startVerifiers(count: number): (packed: readonly Uint8Array[]) => Promise<void> {
  const workers = Array.from({ length: count }, () => {
    const worker = new Worker(new URL('./verify-worker.ts', import.meta.url));
    const waiting: ((results: Uint8Array) => void)[] = [];
    worker.on('message', (results: Uint8Array) => waiting.shift()?.(results));
    return { worker, waiting };
  });
  let turn = 0;
  return async (packed) => {
    const batch = Uint8Array.from(Buffer.concat(packed));
    const chosen = workers[turn++ % workers.length];
    const results = await new Promise<Uint8Array>((resolve) => {
      chosen?.waiting.push(resolve);
      chosen?.worker.postMessage(batch, [batch.buffer]);
    });
    if (results.includes(0)) throw new Error('a signature does not verify');
  };
}

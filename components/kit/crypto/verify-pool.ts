import { Worker } from 'node:worker_threads';
import type { Algorithm } from '#core/crypto/algorithm.ts';
import { createVerifier, type Verifier } from '#core/crypto/verify.ts';
import { AppError } from '#core/errors/errors.ts';
import { type Ed25519Choice, loadEd25519 } from './ed25519.ts';
import { isPackable, packRecords, verifyPacked } from './packed-records.ts';

export interface VerifyItem {
  readonly algorithm: Algorithm;
  /** The canonical key form. */
  readonly publicKey: Uint8Array;
  /** 32 bytes of SHA-256. */
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
  /** The text that digest is the SHA-256 of; avoids a slow path of P-256. Not read for Ed25519. */
  readonly preimage?: Uint8Array | undefined;
}

/** Verifies signatures over digests on worker threads. */
export interface VerifyPool {
  /** The library that verifies Ed25519. */
  readonly backend: 'sodium' | 'node';
  /**
   * One answer an item, in order. Rejects with AppError unavailable VERIFY_POOL_FULL when more than maxQueued
   * signatures wait, and VERIFY_POOL_CLOSED after close.
   */
  verifyBatch(items: readonly VerifyItem[]): Promise<boolean[]>;
  /** Limits the number of threads that work from now on, at least one. */
  limit(threads: number): void;
  /** Ends the threads and rejects waiting batches. */
  close(): Promise<void>;
}

interface VerifyPoolOptions {
  /** Threads; 0 verifies everything in the calling thread. */
  readonly workers: number;
  readonly backend?: Ed25519Choice | undefined;
  /** Records of one message to a thread; small, so that no batch waits behind a large one. */
  readonly recordsPerMessage?: number | undefined;
  /** Batches up to this size are verified in the calling thread, because a message to a thread would cost more. */
  readonly inThreadUpTo?: number | undefined;
  readonly maxQueued?: number | undefined;
  /** Location of the worker's code, when it is bundled elsewhere. */
  readonly workerUrl?: URL | undefined;
}

interface Task {
  readonly packed: Uint8Array<ArrayBuffer>;
  readonly records: number;
  readonly resolve: (results: Uint8Array) => void;
  readonly reject: (error: AppError) => void;
}

interface Thread {
  readonly worker: Worker;
  /** Tasks sent to the thread, oldest first. */
  readonly tasks: Task[];
}

/** A thread holds its next tasks, so that it continues while the calling thread is busy with a whole docket. */
const tasksOfThread = 4;

/** The threads of a pool and the queue before them. */
class Threads {
  readonly #threads = new Set<Thread>();
  readonly #waiting: Task[] = [];
  readonly #fallback: Verifier;
  readonly #url: URL;
  readonly #backend: string;
  #respawnsLeft: number;
  #queued = 0;
  #most: number;
  #closed = false;

  constructor(options: { workers: number; backend: string; url: URL; fallback: Verifier }) {
    this.#fallback = options.fallback;
    this.#url = options.url;
    this.#backend = options.backend;
    this.#respawnsLeft = options.workers * 3;
    this.#most = options.workers;
    for (let index = 0; index < options.workers; index += 1) this.#spawn();
  }

  /** Records that wait or are being verified. */
  get queued(): number {
    return this.#queued;
  }

  get closed(): boolean {
    return this.#closed;
  }

  limit(threads: number): void {
    this.#most = Math.max(1, threads);
    this.#dispatch();
  }

  run(packed: Uint8Array<ArrayBuffer>, records: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#queued += records;
      this.#waiting.push({ packed, records, resolve, reject });
      this.#dispatch();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const closed = new AppError('unavailable', 'VERIFY_POOL_CLOSED', 'The verify pool is closed');
    const running = [...this.#threads].flatMap((thread) => thread.tasks);
    for (const task of [...running, ...this.#waiting.splice(0)]) task.reject(closed);
    const threads = [...this.#threads];
    this.#threads.clear();
    await Promise.all(threads.map((thread) => thread.worker.terminate()));
  }

  #spawn(): void {
    const worker = new Worker(this.#url, { workerData: this.#backend, execArgv: [] });
    const thread: Thread = { worker, tasks: [] };
    // An idle thread must not keep the process alive.
    worker.unref();
    worker.on('message', (results: Uint8Array) => this.#finish(thread, results));
    worker.on('error', () => this.#lose(thread));
    worker.on('exit', () => this.#lose(thread));
    this.#threads.add(thread);
  }

  #dispatch(): void {
    if (this.#threads.size === 0) {
      for (const task of this.#waiting.splice(0))
        this.#settle(task, verifyPacked(this.#fallback, task.packed));
      return;
    }
    for (let thread = this.#free(); thread !== undefined; thread = this.#free()) {
      const task = this.#waiting.shift();
      if (task === undefined) return;
      thread.tasks.push(task);
      thread.worker.ref();
      // Copied once more, so that the records survive when the thread dies.
      const sent = task.packed.slice();
      thread.worker.postMessage(sent.buffer, [sent.buffer]);
    }
  }

  /** Finds the thread with the fewest tasks among those that may have more. */
  #free(): Thread | undefined {
    const working = [...this.#threads].filter(({ tasks }) => tasks.length > 0);
    const mayBegin = working.length < this.#most;
    let best: Thread | undefined;
    for (const thread of mayBegin ? this.#threads : working) {
      if (thread.tasks.length < (best?.tasks.length ?? tasksOfThread)) best = thread;
    }
    return best;
  }

  #finish(thread: Thread, results: Uint8Array): void {
    const task = thread.tasks.shift();
    if (thread.tasks.length === 0) thread.worker.unref();
    if (task !== undefined) this.#settle(task, results);
    this.#dispatch();
  }

  #settle(task: Task, results: Uint8Array): void {
    this.#queued -= task.records;
    task.resolve(results);
  }

  #lose(thread: Thread): void {
    if (!this.#threads.delete(thread) || this.#closed) return;
    this.#waiting.unshift(...thread.tasks);
    if (this.#respawnsLeft > 0) {
      this.#respawnsLeft -= 1;
      this.#spawn();
    }
    this.#dispatch();
  }
}

function verifyHere(verifier: Verifier, item: VerifyItem): boolean {
  const { preimage } = item;
  const slow = item.algorithm !== 'ED25519' && preimage !== undefined;
  return slow ? verifier.verifyPreimage({ ...item, preimage }) : verifier.verifyDigest(item);
}

/**
 * Creates a pool that verifies Ed25519 on worker threads, in packed records moved without copying, and other algorithms
 * in the calling thread. All results are those of createVerifier.
 */
export function createVerifyPool(options: VerifyPoolOptions): VerifyPool {
  const { recordsPerMessage = 64, inThreadUpTo = 2, maxQueued = 65_536 } = options;
  const { name, backend } = loadEd25519(options.backend);
  const verifier = createVerifier(backend);
  const url = options.workerUrl ?? new URL('./verify-worker.ts', import.meta.url);
  const threads = new Threads({ workers: options.workers, backend: name, url, fallback: verifier });

  const verifyPackable = async (
    places: readonly number[],
    items: readonly VerifyItem[],
    results: boolean[],
  ) => {
    const chunks: Promise<void>[] = [];
    for (let start = 0; start < places.length; start += recordsPerMessage) {
      const chunk = places.slice(start, start + recordsPerMessage);
      const packed = packRecords(chunk.flatMap((place) => items[place] ?? []));
      const placed = threads.run(packed, chunk.length).then((answers) => {
        for (const [index, place] of chunk.entries()) results[place] = answers[index] === 1;
      });
      chunks.push(placed);
    }
    await Promise.all(chunks);
  };

  return {
    backend: name,
    async verifyBatch(items) {
      if (threads.closed)
        throw new AppError('unavailable', 'VERIFY_POOL_CLOSED', 'The verify pool is closed');
      const alone = options.workers === 0 || items.length <= inThreadUpTo;
      if (alone) return items.map((item) => verifyHere(verifier, item));
      const places = [...items.keys()].filter((place) => {
        const item = items[place];
        return item !== undefined && item.algorithm === 'ED25519' && isPackable(item);
      });
      if (threads.queued + places.length > maxQueued) {
        const options = { retryAfterSeconds: 1 };
        throw new AppError(
          'unavailable',
          'VERIFY_POOL_FULL',
          'Too many signatures wait to be verified',
          options,
        );
      }
      const results = new Array<boolean>(items.length).fill(false);
      const packable = verifyPackable(places, items, results);
      for (const [place, item] of items.entries()) {
        if (item.algorithm !== 'ED25519') results[place] = verifyHere(verifier, item);
      }
      await packable;
      return results;
    },
    limit: (most) => threads.limit(most),
    close: () => threads.close(),
  };
}

import type { SealedRow } from '../sealed/rows/store.ts';
import type { ValueTransaction } from '../values/format.ts';

/** A docket that this process has stored, with its transactions in order. */
interface StoredDocket {
  readonly registerId: string;
  readonly docketNumber: number;
  readonly transactions: readonly ValueTransaction[];
}

/** Waits for transactions until they are stored or the time is up. */
export interface Confirmations {
  /** Wakes the waiters of the docket's transactions. */
  confirmed(docket: StoredDocket): void;
  /** Another replica stored something: all waiters query the database again. */
  recheck(): void;
  /**
   * Resolves with the result of `find` or `fromStored`, or with undefined after `timeoutMs`. `find` is called at the
   * start, on every wake signal and every `pollMs`, so that a lost signal only costs time.
   */
  wait<T>(key: { readonly registerId: string; readonly txId: string }, wait: Wait<T>): Promise<T | undefined>;
  /** Ends every wait with undefined. */
  close(): void;
}

interface Wait<T> {
  readonly timeoutMs: number;
  readonly find: () => Promise<T | undefined>;
  /** The result for a transaction that this process has just stored: it is not read back. */
  readonly fromStored?: ((row: SealedRow) => T) | undefined;
}

interface Waiter {
  readonly wake: () => void;
  readonly store: (row: SealedRow) => void;
}

const pollMs = 500;

/** Maximum concurrent waits; a request beyond it is answered at once as if its time were up. */
const maxWaiters = 4_096;

function rowOf({ docketNumber }: StoredDocket, one: ValueTransaction, position: number): SealedRow {
  const { payloadHashForm } = one;
  const bytes = {
    leaf: Buffer.from(one.leaf),
    record: Buffer.from(one.record),
    payload: Buffer.from(one.payload),
  };
  return { docketNumber, position, payloadHashForm, ...bytes };
}

/** The result of a wait from the docket that this process stores; `wake` is called without one. */
function storedResult<T>({ fromStored }: Wait<T>, wake: () => void) {
  const { promise: taken, resolve } = Promise.withResolvers<T>();
  let result: T | undefined;
  const take = (row: SealedRow): void => {
    if (fromStored !== undefined) {
      result = fromStored(row);
      resolve(result);
    }
    wake();
  };
  return { take, taken, result: () => result };
}

export function createConfirmations(): Confirmations {
  const waiters = new Map<string, Set<Waiter>>();
  const ended = new AbortController();
  let count = 0;

  const wakeAll = (set: Iterable<Waiter>) => {
    for (const waiter of set) waiter.wake();
  };

  function addWaiter(key: string, waiter: Waiter): () => void {
    const set = waiters.get(key) ?? new Set();
    waiters.set(key, set.add(waiter));
    count += 1;
    return () => {
      count -= 1;
      set.delete(waiter);
      if (set.size === 0) waiters.delete(key);
    };
  }

  return {
    confirmed(docket) {
      if (count === 0) return;
      for (const [position, one] of docket.transactions.entries()) {
        for (const waiter of waiters.get(`${docket.registerId}/${one.txId}`) ?? [])
          waiter.store(rowOf(docket, one, position));
      }
    },
    recheck() {
      for (const set of waiters.values()) wakeAll(set);
    },
    async wait({ registerId, txId }, wait) {
      const { timeoutMs, find } = wait;
      if (count >= maxWaiters) return find();
      const deadline = performance.now() + timeoutMs;
      let woken = Promise.withResolvers<void>();
      const wake = () => woken.resolve();
      const stored = storedResult(wait, wake);
      const leave = addWaiter(`${registerId}/${txId}`, { wake, store: stored.take });
      ended.signal.addEventListener('abort', wake, { once: true });
      try {
        for (;;) {
          woken = Promise.withResolvers<void>();
          const found = stored.result() ?? (await Promise.race([find(), stored.taken]));
          if (found !== undefined) return found;
          const leftMs = deadline - performance.now();
          if (leftMs <= 0 || ended.signal.aborted) return undefined;
          const timer = setTimeout(wake, Math.min(pollMs, leftMs));
          await woken.promise;
          clearTimeout(timer);
        }
      } finally {
        ended.signal.removeEventListener('abort', wake);
        leave();
      }
    },
    close() {
      ended.abort();
    },
  };
}

/** Waits for transactions until they are stored or the time is up. */
export interface Confirmations {
  /** Wakes the waiters of these transactions. */
  confirmed(registerId: string, txIds: readonly string[]): void;
  /** Another replica stored something: all waiters query the database again. */
  recheck(): void;
  /**
   * Resolves with the result of `find`, or with undefined after `timeoutMs`. `find` is called at the start, on every
   * wake signal and every `pollMs`, so that a lost signal only costs time.
   */
  wait<T>(key: { readonly registerId: string; readonly txId: string }, wait: Wait<T>): Promise<T | undefined>;
  /** Ends every wait with undefined. */
  close(): void;
}

interface Wait<T> {
  readonly timeoutMs: number;
  readonly find: () => Promise<T | undefined>;
}

interface Waiter {
  readonly wake: () => void;
}

const pollMs = 500;

/** Maximum concurrent waits; a request beyond it is answered at once as if its time were up. */
const maxWaiters = 4_096;

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
    confirmed(registerId, txIds) {
      if (count === 0) return;
      for (const txId of txIds) wakeAll(waiters.get(`${registerId}/${txId}`) ?? []);
    },
    recheck() {
      for (const set of waiters.values()) wakeAll(set);
    },
    async wait({ registerId, txId }, { timeoutMs, find }) {
      if (count >= maxWaiters) return find();
      const deadline = performance.now() + timeoutMs;
      let woken = Promise.withResolvers<void>();
      const wake = () => woken.resolve();
      const leave = addWaiter(`${registerId}/${txId}`, { wake });
      ended.signal.addEventListener('abort', wake, { once: true });
      try {
        for (;;) {
          woken = Promise.withResolvers<void>();
          const found = await find();
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

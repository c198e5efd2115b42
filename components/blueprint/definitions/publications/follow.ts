import type { Database } from '#kit/db/db.ts';
import type { Ledger } from '../../clients/ledger.ts';
import type { BlueprintDatabase } from '../../database/schema.ts';
import { findCursor, storePublications } from './store.ts';

interface FollowDeps {
  readonly db: Database<BlueprintDatabase>;
  readonly ledger: Ledger;
}

/** Keeps the index of publications up to date with the ledger. */
export interface PublicationIndex {
  /** Reads the publications of one register that the index does not have yet. Errors: unavailable, timeout. */
  read(registerId: string): Promise<void>;
  /** The same for every register that has grown since the last time. */
  readAll(signal: AbortSignal): Promise<void>;
}

/** Several calls for a register share one reading that begins after them. */
export function createPublicationIndex({ db, ledger }: FollowDeps): PublicationIndex {
  const heights = new Map<string, number>();
  const waiting = new Map<string, Promise<void>>();
  const reading = new Map<string, Promise<void>>();

  async function readPages(registerId: string): Promise<void> {
    for (;;) {
      const after = await findCursor(db.read, registerId);
      const { publications, next, complete } = await ledger.listPublications(registerId, after);
      if (next !== undefined && publications.length > 0)
        await db.transact((tx) => storePublications(tx, registerId, { publications, next }));
      if (complete || publications.length === 0) return;
    }
  }

  function begin(registerId: string): Promise<void> {
    const run = readPages(registerId).finally(() => {
      if (reading.get(registerId) === run) reading.delete(registerId);
    });
    reading.set(registerId, run);
    return run;
  }

  function read(registerId: string): Promise<void> {
    const running = reading.get(registerId);
    if (running === undefined) return begin(registerId);
    const queued = waiting.get(registerId);
    if (queued !== undefined) return queued;
    const next = running
      .catch(() => undefined)
      .then(() => {
        waiting.delete(registerId);
        return begin(registerId);
      });
    waiting.set(registerId, next);
    return next;
  }

  return {
    read,
    readAll: async (signal) => {
      for (const { registerId, height } of await ledger.listRegisters()) {
        signal.throwIfAborted();
        if (heights.get(registerId) === height) continue;
        await read(registerId);
        heights.set(registerId, height);
      }
    },
  };
}

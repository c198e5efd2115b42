import { randomUUID } from 'node:crypto';
import type { WalletEventKind, WalletFact } from '#core/events/wallet-events.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { appendEvent, outboxMigration, readEvents } from '#kit/db/outbox.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { EventSource } from './consumer.ts';

type Empty = Record<never, never>;

/** A double of the wallet service with its own database: a real outbox and a source that reads it. */
export interface WalletLog extends EventSource {
  readonly db: Database<Empty>;
  /** Number of reads. */
  readonly reads: number;
  /** Maximum number of events in a page; 500 by default. */
  limit: number;
  tell(kind: WalletEventKind, ...facts: readonly WalletFact[]): Promise<void>;
  /** Appends an event of any kind and content. */
  append(kind: string, data: unknown): Promise<void>;
  /** Appends an event at once and commits it later. */
  appendUncommitted(kind: WalletEventKind, fact: WalletFact): Promise<{ commit(): Promise<void> }>;
  close(): Promise<void>;
}

export async function openWalletLog(): Promise<WalletLog> {
  const { log, telemetry } = testRuntime('service-wallet');
  const db = await openDatabase<Empty>({
    url: await testDatabase('wallet_log'),
    schema: 'wallet',
    log,
    telemetry,
    migrations: [outboxMigration('0001-outbox')],
  });
  const append = (kind: string, data: unknown) =>
    db.transact((tx) => appendEvent(tx, { kind, key: 'any', data }));
  let reads = 0;
  const walletLog: WalletLog = {
    db,
    limit: 500,
    get reads() {
      return reads;
    },
    append,
    read: async (after) => {
      reads += 1;
      const { limit } = walletLog;
      const events = await readEvents(db.read, after, limit);
      return { events, complete: events.length < limit };
    },
    tell: async (kind, ...facts) => {
      for (const fact of facts) await append(kind, fact);
    },
    appendUncommitted: async (kind, fact) => {
      const written = Promise.withResolvers<void>();
      const mayCommit = Promise.withResolvers<void>();
      const done = db.transact(async (tx) => {
        await appendEvent(tx, { kind, key: fact.walletId, data: fact });
        written.resolve();
        await mayCommit.promise;
      });
      await written.promise;
      const commit = async () => {
        mayCommit.resolve();
        await done;
      };
      return { commit };
    },
    close: () => db.close(),
  };
  return walletLog;
}

/** A wallet of a person, created on the given day of November 2026. */
export function factOf(ownerId: string, day: number, change: Partial<WalletFact> = {}): WalletFact {
  const walletId = randomUUID();
  return {
    walletId,
    address: `w1${walletId.replaceAll('-', '')}`,
    ownerKind: 'User',
    ownerId,
    status: 'Active',
    createdAt: `2026-11-${String(day).padStart(2, '0')}T12:00:00.000Z`,
    ...change,
  };
}

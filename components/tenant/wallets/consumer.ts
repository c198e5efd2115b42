import { isAppError } from '#core/errors/errors.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { parseWalletEvent } from '#core/events/wallet-events.ts';
import type { Bus } from '#kit/bus/bus.ts';
import { createWakeSignal } from '#kit/clock/poll-loop.ts';
import type { Database } from '#kit/db/db.ts';
import { formatCursor, type OutboxCursor, type OutboxEvent } from '#kit/db/outbox.ts';
import type { Logger } from '#kit/log/log.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { applyWalletEvent, findCursor, lockCursor, saveCursor } from './store.ts';

const SOURCE = 'wallet';
const POLL_MS = 2_000;

export interface EventPage {
  readonly events: readonly Pick<OutboxEvent, 'cursor' | 'kind' | 'data'>[];
  /** False when the log has more events after this page. */
  readonly complete: boolean;
}

/** The event log of the wallet service. */
export interface EventSource {
  /** Events after the cursor, oldest first. */
  read(after: OutboxCursor, signal: AbortSignal): Promise<EventPage>;
}

export interface ConsumerOptions {
  readonly db: Database<TenantDatabase>;
  readonly source: EventSource;
  readonly bus: Pick<Bus, 'subscribe'>;
  readonly log: Logger;
  /** Called with the number of events that a transaction applied. */
  readonly onApplied: (count: number) => void;
  readonly onFailed: () => void;
  /** Poll interval in milliseconds when no notification arrives; 2000 when absent. */
  readonly pollMs?: number;
}

export interface Consumer {
  /** Stops the consumer; resolves when it has ended. */
  stop(): Promise<void>;
}

/**
 * Consumes the event log of the wallet service, so that tokens can name a person's oldest wallet. A notification starts
 * a read at once; without one it polls every two seconds. No request waits for it: while the wallet service is
 * unavailable, tokens carry the last known wallet. The consumer stops at an event that it cannot read, because skipping
 * it would lose the change.
 */
export function startWalletConsumer(options: ConsumerOptions): Consumer {
  const loop = new ConsumerLoop(options);
  const running = loop.run();
  return {
    stop: () => {
      loop.end();
      return running;
    },
  };
}

/**
 * Reads one page and applies it together with the cursor in one transaction. A page that another replica has already
 * applied is dropped.
 *
 * @returns false when the log has more events after this page.
 */
export async function consumePage(
  options: Pick<ConsumerOptions, 'db' | 'source' | 'onApplied'>,
  signal: AbortSignal,
): Promise<boolean> {
  const { db, source } = options;
  const after = await findCursor(db.read, SOURCE);
  const page = await source.read(after, signal);
  const last = page.events.at(-1);
  if (last === undefined) return page.complete;
  const events = page.events.flatMap(({ kind, data }) => parseWalletEvent(kind, data) ?? []);
  const ofPeople = events.filter(({ fact }) => fact.ownerKind === 'User');
  const applied = await db.transact(async (tx) => {
    const current = await lockCursor(tx, SOURCE);
    if (formatCursor(current) !== formatCursor(after)) return 0;
    for (const event of ofPeople) await applyWalletEvent(tx, event);
    await saveCursor(tx, SOURCE, last.cursor);
    return ofPeople.length;
  });
  options.onApplied(applied);
  return page.complete;
}

class ConsumerLoop {
  readonly #options: ConsumerOptions;
  readonly #ending = new AbortController();
  readonly #unsubscribe: () => void;
  readonly #wake = createWakeSignal();
  #failing = false;

  constructor(options: ConsumerOptions) {
    this.#options = options;
    this.#unsubscribe = options.bus.subscribe(SUBJECTS.walletEvents, () => this.#wake.notify());
  }

  end(): void {
    this.#ending.abort();
    this.#unsubscribe();
    this.#wake.notify();
  }

  async run(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      await this.#readAll();
      await this.#wake.wait(this.#options.pollMs ?? POLL_MS);
    }
  }

  async #readAll(): Promise<void> {
    const { signal } = this.#ending;
    try {
      for (let complete = false; !complete && !signal.aborted; ) {
        complete = await consumePage(this.#options, signal);
      }
      if (this.#failing) this.#options.log.info('the wallet events are consumed again');
      this.#failing = false;
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    const { log, onFailed } = this.#options;
    onFailed();
    if (this.#failing) return;
    this.#failing = true;
    // this service starts before the wallet service, so an unavailable wallet service is not an error
    if (isAppError(error, 'unavailable') || isAppError(error, 'timeout')) {
      log.info(
        { code: error.code, reason: error.message },
        'the wallet events cannot be consumed now; tokens carry the last known wallets',
      );
      return;
    }
    log.error({ err: error }, 'the wallet events cannot be consumed; the consumer retries at the same event');
  }
}

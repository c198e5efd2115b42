import { SUBJECTS } from '#core/events/subjects.ts';
import { parseWalletEvent } from '#core/events/wallet-events.ts';
import type { Transactor } from '#kit/db/db.ts';
import { formatCursor, type OutboxCursor, type OutboxEvent, parseCursor } from '#kit/db/outbox.ts';
import { type ConsumerOptions, type Consumption, startConsumer } from '#kit/events/consumer.ts';
import type { Follower } from '#kit/events/follow.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { applyWalletEvent } from './store.ts';

type LogEvent = Pick<OutboxEvent, 'cursor' | 'kind' | 'data'>;

export interface EventPage {
  readonly events: readonly LogEvent[];
  /** False when the log has more events after this page. */
  readonly complete: boolean;
}

/** The event log of the wallet service. */
export interface EventSource {
  /** Events after the cursor, oldest first. */
  read(after: OutboxCursor, signal: AbortSignal): Promise<EventPage>;
}

type WalletConsumption = Consumption<TenantDatabase, LogEvent>;

/**
 * Consumes the event log of the wallet service, so that tokens can name a person's oldest wallet. No request waits for
 * it: while the wallet service is unavailable, tokens carry the last known wallet.
 */
export function startWalletConsumer(
  options: Omit<ConsumerOptions, 'subject' | 'meanwhile'> &
    Pick<WalletConsumption, 'db' | 'onApplied'> & { readonly source: EventSource },
): Follower {
  return startConsumer(walletConsumption(options), {
    ...options,
    subject: SUBJECTS.walletEvents,
    meanwhile: 'tokens carry the last known wallets',
  });
}

/** Consumption of the wallet service's events: only wallets of people have an effect. */
export function walletConsumption(
  options: Pick<WalletConsumption, 'db' | 'onApplied'> & { readonly source: EventSource },
): WalletConsumption {
  const { db, source, onApplied } = options;
  return { source: 'wallet', db, log: logOf(source), apply, onApplied };
}

async function apply(tx: Transactor<TenantDatabase>, logged: readonly LogEvent[]): Promise<number> {
  const events = logged.flatMap(({ kind, data }) => parseWalletEvent(kind, data) ?? []);
  const ofPeople = events.filter(({ fact }) => fact.ownerKind === 'User');
  for (const event of ofPeople) await applyWalletEvent(tx, event);
  return ofPeople.length;
}

/** The position is the cursor of the last event. */
function logOf(source: EventSource): WalletConsumption['log'] {
  return {
    read: async (after, signal) => {
      const cursor = parseCursor(after);
      if (cursor === undefined) throw refusal('CURSOR_UNREADABLE');
      const { events, complete } = await source.read(cursor, signal);
      const last = events.at(-1);
      return { events, position: last === undefined ? after : formatCursor(last.cursor), complete };
    },
  };
}

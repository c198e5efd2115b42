import { type KeysUnwrapped, parseKeysUnwrapped } from '#core/events/key-use-events.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { parseWalletChanged, type WalletChanged } from '#core/events/wallet-change-events.ts';
import { parseWalletEvent } from '#core/events/wallet-events.ts';
import type { Transactor } from '#kit/db/db.ts';
import { formatCursor, type OutboxCursor, type OutboxEvent, parseCursor } from '#kit/db/outbox.ts';
import { type ConsumerOptions, type Consumption, startConsumer } from '#kit/events/consumer.ts';
import type { Follower } from '#kit/events/follow.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
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

/** What the consumption reads and does besides its own tables. */
interface WalletSources {
  readonly source: EventSource;
  /** Writes a use of keys to an audit log. */
  readonly auditUse: (tx: Transactor<TenantDatabase>, use: KeysUnwrapped) => Promise<void>;
  /** Writes a change of a wallet of an organisation to its audit log. */
  readonly auditChange: (tx: Transactor<TenantDatabase>, change: WalletChanged) => Promise<void>;
  /** Learns of a new wallet of an organisation. */
  readonly onOrganizationWallet: (
    tx: Transactor<TenantDatabase>,
    wallet: { readonly organizationId: string; readonly walletAddress: string },
  ) => Promise<void>;
}

/**
 * Consumes the event log of the wallet service, so that tokens can name a person's oldest wallet. No request waits for
 * it: while the wallet service is unavailable, tokens carry the last known wallet.
 */
export function startWalletConsumer(
  options: Omit<ConsumerOptions, 'subject' | 'meanwhile'> &
    Pick<WalletConsumption, 'db' | 'onApplied'> &
    WalletSources,
): Follower {
  return startConsumer(walletConsumption(options), {
    ...options,
    subject: SUBJECTS.walletEvents,
    meanwhile: 'tokens carry the last known wallets',
  });
}

/** Consumption of the wallet service's events: wallets of people, and what the audit logs record. */
export function walletConsumption(
  options: Pick<WalletConsumption, 'db' | 'onApplied'> & WalletSources,
): WalletConsumption {
  const { db, source, onApplied } = options;
  const apply: WalletConsumption['apply'] = (tx, events) => applyEvents(tx, events, options);
  return { source: 'wallet', db, log: logOf(source), apply, onApplied };
}

async function applyEvents(
  tx: Transactor<TenantDatabase>,
  logged: readonly LogEvent[],
  { auditUse, auditChange, onOrganizationWallet }: Omit<WalletSources, 'source'>,
): Promise<number> {
  const events = logged.flatMap(({ kind, data }) => parseWalletEvent(kind, data) ?? []);
  const ofPeople = events.filter(({ fact }) => fact.ownerKind === 'User');
  for (const event of ofPeople) await applyWalletEvent(tx, event);
  const made = events.filter(
    ({ kind, fact }) => kind === 'WalletCreated' && fact.ownerKind === 'Organization',
  );
  for (const { fact } of made)
    await onOrganizationWallet(tx, { organizationId: fact.ownerId, walletAddress: fact.address });
  const uses = logged.flatMap(({ kind, data }) => parseKeysUnwrapped(kind, data) ?? []);
  for (const use of uses) await auditUse(tx, use);
  const changes = logged.flatMap(({ kind, data }) => parseWalletChanged(kind, data) ?? []);
  for (const change of changes) await auditChange(tx, change);
  return ofPeople.length + uses.length + changes.length;
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

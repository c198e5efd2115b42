import type { TenantHubArguments, TenantHubEvent } from '#core/events/hub-events.ts';
import { parseTenantEvent } from '#core/events/tenant-events.ts';
import type { Reader } from '#kit/db/db.ts';
import type { OutboxEvent } from '#kit/db/outbox.ts';
import type { Signal } from '#kit/hub/hub.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { countUnreadOf } from './store.ts';

const prefix = 'user:';

/** The group of a person's connections to the hub. */
export function groupOf(platformUserId: string): string {
  return `${prefix}${platformUserId}`;
}

/** The person of a group. */
export function personOf(group: string): string {
  return group.slice(prefix.length);
}

function signal<E extends TenantHubEvent>(
  target: E,
  args: TenantHubArguments<E>,
  groups: readonly string[],
): Signal {
  return { target, arguments: args, groups };
}

/**
 * The signals of rows of the outbox, in their order. The unread count is read here and not where it changes, so that
 * concurrent changes need no lock; a person gets it once for all of the rows, after the last one.
 *
 * @param isHeld whether a group has connections; rows of other groups give no signals
 */
export async function inboxSignals(
  read: Reader<TenantDatabase>,
  rows: readonly OutboxEvent[],
  isHeld: (group: string) => boolean,
): Promise<Signal[]> {
  const held = rows.filter(({ key }) => isHeld(groupOf(key)));
  if (held.length === 0) return [];
  const last = new Map(held.map((row) => [row.key, row]));
  const counts = await countUnreadOf(read, [...last.keys()]);
  return held.flatMap((row) => {
    const event = parseTenantEvent(row.kind, row.data);
    if (event === undefined) return [];
    const { platformUserId, traceId = '' } = event.data;
    const facts: [string, string] = [row.createdAt.toISOString(), traceId];
    const groups = [groupOf(platformUserId)];
    const signals: Signal[] = [];
    if (event.kind === 'InboxEntryAdded') {
      signals.push(signal('InboxEntryAdded', [event.data.entryId, ...facts], groups));
    }
    if (last.get(row.key) === row) {
      const unread = counts.get(platformUserId) ?? 0;
      signals.push(signal('InboxUnreadCountUpdated', [unread, ...facts], groups));
    }
    return signals;
  });
}

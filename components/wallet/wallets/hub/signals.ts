import { type HolderEvent, parseHolderEvent } from '#core/events/holder-events.ts';
import type { WalletHubArguments, WalletHubEvent } from '#core/events/hub-events.ts';
import type { OutboxEvent } from '#kit/db/outbox.ts';
import type { Signal } from '#kit/hub/hub.ts';

const walletPrefix = 'wallet:';
const personPrefix = `${walletPrefix}platform-user:`;

/** The group of a person's connections. */
export function personGroup(platformUserId: string): string {
  return `${personPrefix}${platformUserId}`;
}

/** The group of connections that follow a wallet. */
export function walletGroup(address: string): string {
  return `${walletPrefix}${address}`;
}

/** The person of a group; undefined for the group of a wallet. */
export function personOfGroup(group: string): string | undefined {
  return group.startsWith(personPrefix) ? group.slice(personPrefix.length) : undefined;
}

/** The wallet of a group that is no person's. */
export function walletOfGroup(group: string): string {
  return group.slice(walletPrefix.length);
}

/**
 * The signals of rows of the outbox, in their order; rows that no connection follows have none.
 *
 * Errors: internal/EVENT_UNREADABLE for a row that violates its schema.
 */
export function signalsOf(rows: readonly OutboxEvent[], isHeld: (group: string) => boolean): Signal[] {
  return rows.flatMap((row) => {
    const event = parseHolderEvent(row.kind, row.data);
    if (event === undefined) return [];
    const groups = groupsOf(event);
    return groups.some(isHeld) ? [signalOf(event, row.createdAt.toISOString(), groups)] : [];
  });
}

function groupsOf({ kind, data }: HolderEvent): string[] {
  if (kind === 'DeviceRevoked') return [personGroup(data.platformUserId)];
  const { walletAddress, platformUserId } = data;
  const ofPerson = platformUserId === undefined ? [] : [personGroup(platformUserId)];
  return [walletGroup(walletAddress), ...ofPerson];
}

function signalOf({ kind, data }: HolderEvent, occurredAt: string, groups: readonly string[]): Signal {
  if (kind === 'DeviceRevoked') return signal(kind, [data.deviceId], groups);
  return signal(kind, [data.credentialId, occurredAt, data.traceId ?? ''], groups);
}

function signal<E extends WalletHubEvent>(
  target: E,
  args: WalletHubArguments<E>,
  groups: readonly string[],
): Signal {
  return { target, arguments: args, groups };
}

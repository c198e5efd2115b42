import { type BlueprintEvent, parseBlueprintEvent } from '#core/events/blueprint-events.ts';
import type { BlueprintHubArguments, BlueprintHubEvent } from '#core/events/hub-events.ts';
import type { OutboxEvent } from '#kit/db/outbox.ts';
import type { Signal } from '#kit/hub/hub.ts';

const prefix = 'wallet:';

/** The group of connections that follow a wallet. */
export function walletGroup(address: string): string {
  return `${prefix}${address}`;
}

/** The wallet of a group. */
export function walletOfGroup(group: string): string {
  return group.slice(prefix.length);
}

const progressEvents = {
  Encrypting: 'EncryptionProgress',
  Encrypted: 'EncryptionComplete',
  Failed: 'EncryptionFailed',
} as const;

/** The signals of rows of the outbox, in their order; rows of wallets that no connection follows have none. */
export function signalsOf(rows: readonly OutboxEvent[], isHeld: (group: string) => boolean): Signal[] {
  return rows.flatMap((row) => {
    if (!isHeld(walletGroup(row.key))) return [];
    const event = parseBlueprintEvent(row.kind, row.data);
    return event === undefined ? [] : signalsOfEvent(event, row.createdAt.toISOString());
  });
}

function signalsOfEvent(event: BlueprintEvent, occurredAt: string): Signal[] {
  const { wallet, traceId = '' } = event.data;
  const groups = [walletGroup(wallet)];
  const signal = <E extends BlueprintHubEvent>(target: E, args: BlueprintHubArguments<E>): Signal => ({
    target,
    arguments: args,
    groups,
  });
  if (event.kind === 'OperationChanged') {
    const { operationId, progress } = event.data;
    return [signal(progressEvents[progress], [operationId, occurredAt, traceId])];
  }
  const { instanceId, actionId, isRejection, available, hasEnded } = event.data;
  const facts: [string, string] = [occurredAt, traceId];
  return [
    signal(isRejection ? 'ActionRejected' : 'ActionConfirmed', [instanceId, String(actionId), ...facts]),
    signal('InstanceAdvanced', [instanceId, ...facts]),
    ...available.map((id) => signal('ActionAvailable', [instanceId, String(id), ...facts])),
    ...(hasEnded && !isRejection ? [signal('WorkflowCompleted', [instanceId, ...facts])] : []),
  ];
}

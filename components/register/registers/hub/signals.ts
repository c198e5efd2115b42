import type { RegisterHubArguments, RegisterHubEvent } from '#core/events/hub-events.ts';
import { parseStoredEvent, type StoredEventData } from '#core/events/register-events.ts';
import type { Reader } from '#kit/db/db.ts';
import type { OutboxEvent } from '#kit/db/outbox.ts';
import type { Signal } from '#kit/hub/hub.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { sealedFactsOf } from '../feed/store.ts';
import { registerGroup, tenantGroup } from './groups.ts';

type Facts = readonly [occurredAt: string, traceId: string];

function signal<E extends RegisterHubEvent>(
  target: E,
  args: RegisterHubArguments<E>,
  groups: readonly string[],
): Signal {
  return { target, arguments: args, groups };
}

/**
 * The signals of rows of the outbox. Transactions of a docket are read for registers alone that have subscribers on
 * this replica.
 *
 * Errors: internal/EVENT_UNREADABLE for a row that violates its schema.
 */
export async function signalsOf(
  db: Reader<RegisterSchema>,
  rows: readonly OutboxEvent[],
  isHeld: (group: string) => boolean,
): Promise<readonly Signal[]> {
  const signals: Signal[] = [];
  for (const row of rows) signals.push(...(await signalsOfRow(db, row, isHeld)));
  return signals;
}

async function signalsOfRow(
  db: Reader<RegisterSchema>,
  row: OutboxEvent,
  isHeld: (group: string) => boolean,
): Promise<readonly Signal[]> {
  const event = parseStoredEvent(row.kind, row.data);
  if (event === undefined) return [];
  const { data } = event;
  const facts: Facts = [row.createdAt.toISOString(), ('traceId' in data ? data.traceId : undefined) ?? ''];
  const group = registerGroup(data.registerId);
  switch (event.kind) {
    case 'RegisterCreated':
    case 'RegisterDeleted': {
      const groups = [group, ...event.data.organizationIds.map(tenantGroup)];
      const changed = signal(event.kind, [data.registerId, ...facts], groups);
      return [event.kind === 'RegisterDeleted' ? { ...changed, endsGroup: group } : changed];
    }
    case 'DocketSealed':
      return isHeld(group) ? await signalsOfDocket(db, event.data, facts) : [];
    default:
      return [];
  }
}

/** A client that reads slowly gets the height in place of the transactions. */
async function signalsOfDocket(
  db: Reader<RegisterSchema>,
  { registerId, docketNumber, transactionCount }: StoredEventData<'DocketSealed'>,
  facts: Facts,
): Promise<readonly Signal[]> {
  const groups = [registerGroup(registerId)];
  const range = { docketNumber, from: 0, to: transactionCount };
  const { txIds } = await sealedFactsOf(db, registerId, range);
  const ofDocket = [registerId, docketNumber, ...facts] as const;
  const height = signal('RegisterHeightUpdated', [...ofDocket], groups);
  return [
    signal('DocketSealed', [...ofDocket], groups),
    signal('DocketConfirmed', [...ofDocket], groups),
    height,
    ...txIds.map((txId) => ({
      ...signal('TransactionConfirmed', [registerId, txId, ...facts], groups),
      instead: height,
    })),
  ];
}

import type {
  RegisterEvent,
  RegisterEventData,
  RegisterEventKind,
  StoredEventData,
  StoredRegisterEvent,
} from '#core/events/register-events.ts';
import { receiptIdOf } from '../../ledger/dockets/receipt-id.ts';

/** A row of the outbox, as the feed reads it. */
export interface FeedRow {
  readonly event: StoredRegisterEvent;
  /** Text of the row's position; it identifies events that have no other id. */
  readonly position: string;
  readonly createdAt: Date;
}

/** Facts from the database that complete the row of a docket. */
export interface SealedFacts {
  readonly organizationIds: readonly string[];
  /** The docket's own timestamp; undefined when the docket is purged. */
  readonly sealedAt: string | undefined;
  /** Ids of its transactions from a position on. */
  readonly txIds: readonly string[];
}

interface Named<K extends RegisterEventKind> {
  readonly id: string;
  readonly kind: K;
  readonly data: RegisterEventData<K>;
}

function event<K extends RegisterEventKind>(kind: K, name: string, data: RegisterEventData<K>): Named<K> {
  const id = name === '' ? `${kind}:${data.registerId}` : `${kind}:${data.registerId}:${name}`;
  return { id, kind, data };
}

function common({ event: { data }, createdAt }: FeedRow) {
  const traceId = 'traceId' in data ? (data.traceId ?? '') : '';
  return { registerId: data.registerId, occurredAt: createdAt.toISOString(), traceId };
}

/** The event of a row that is not a docket; undefined for rows that the feed omits. */
export function eventOf(row: FeedRow): RegisterEvent | undefined {
  const { event: stored, position } = row;
  const facts = common(row);
  switch (stored.kind) {
    case 'RegisterCreated':
      return event('RegisterCreated', '', { ...facts, organizationIds: stored.data.organizationIds });
    case 'RegisterDeleted':
      return event('RegisterDeleted', '', { ...facts, organizationIds: stored.data.organizationIds });
    case 'RegisterStatusChanged': {
      const { status, organizationIds } = stored.data;
      return event('RegisterStatusChanged', position, { ...facts, status, organizationIds });
    }
    case 'RegisterSyncStateChanged':
      return event('RegisterSyncStateChanged', position, { ...facts, syncState: stored.data.syncState });
    case 'RegisterAdvertised':
    case 'DocketSealed':
      return undefined;
  }
}

/** Events of a docket itself, before those of its transactions; docket 0 opens the register. */
export function docketEvents(
  row: FeedRow,
  docket: StoredEventData<'DocketSealed'>,
  { organizationIds }: Pick<SealedFacts, 'organizationIds'>,
): RegisterEvent[] {
  const { docketNumber, hash } = docket;
  const facts = common(row);
  const newHeight = docketNumber + 1;
  const opened = { ...facts, status: 'Online', organizationIds: [...organizationIds] };
  return [
    ...(docketNumber === 0 ? [event('RegisterStatusChanged', 'genesis', opened)] : []),
    event('DocketSealed', String(docketNumber), { ...facts, docketNumber, docketHash: hash }),
    event('RegisterHeightUpdated', String(newHeight), { ...facts, newHeight }),
  ];
}

/** Number of events of a docket. */
export function countEvents({ docketNumber, transactionCount }: StoredEventData<'DocketSealed'>): number {
  return frontOf(docketNumber) + 2 * transactionCount;
}

/** Number of events before those of the transactions. */
export function frontOf(docketNumber: number): number {
  return docketNumber === 0 ? 3 : 2;
}

/** Events of a docket's transactions: each is confirmed and has its receipt. */
export function transactionEvents(
  row: FeedRow,
  docket: StoredEventData<'DocketSealed'>,
  { txIds, sealedAt }: Pick<SealedFacts, 'txIds' | 'sealedAt'>,
): RegisterEvent[] {
  const facts = common(row);
  const { docketNumber, hash: docketHash } = docket;
  return txIds.flatMap((transactionId): RegisterEvent[] => {
    const receiptId = receiptIdOf({ registerId: facts.registerId, txId: transactionId, docketHash });
    return [
      event('TransactionConfirmed', transactionId, { ...facts, transactionId }),
      event('TransactionReceipt', receiptId, {
        ...facts,
        transactionId,
        docketNumber,
        receiptId,
        sealedAt: sealedAt ?? facts.occurredAt,
      }),
    ];
  });
}

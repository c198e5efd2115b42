import { z } from 'zod';
import { AppError } from '../errors/errors.ts';

/** W3C trace id of the request that led to the event; absent when it was not traced. */
const traceId = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .optional();

/** Events in the outbox of the tenant service, by kind. Unknown members are ignored. */
const stored = {
  /** A person has a new inbox entry, which is unread. */
  InboxEntryAdded: z.object({ platformUserId: z.uuid(), entryId: z.uuid(), traceId }),
  /** A person has read or dismissed unread entries. */
  InboxEntriesSeen: z.object({ platformUserId: z.uuid(), traceId }),
} as const;

type StoredKind = keyof typeof stored;

/** A parsed row of the tenant service's outbox. */
type TenantEvent = {
  [K in StoredKind]: { readonly kind: K; readonly data: z.output<(typeof stored)[K]> };
}[StoredKind];

/**
 * Parses one event of the tenant service's outbox; undefined for an unknown kind.
 * Errors: internal/EVENT_UNREADABLE when the data of a known kind does not match its schema.
 */
export function parseTenantEvent(kind: string, data: unknown): TenantEvent | undefined {
  const schema = isStoredKind(kind) ? stored[kind] : undefined;
  if (schema === undefined) return undefined;
  const parsed = schema.safeParse(data);
  if (parsed.success) return { kind, data: parsed.data } as TenantEvent;
  throw new AppError('internal', 'EVENT_UNREADABLE', `an event ${kind} is not what its schema says`, {
    cause: parsed.error,
  });
}

function isStoredKind(kind: string): kind is StoredKind {
  return Object.hasOwn(stored, kind);
}

/** An event in the form that the outbox stores. The key is the person. */
function storedEvent<K extends StoredKind>(kind: K, data: z.input<(typeof stored)[K]>) {
  return { kind, key: data.platformUserId, data };
}

/** A person has a new inbox entry. */
export function inboxEntryAdded(data: z.input<typeof stored.InboxEntryAdded>) {
  return storedEvent('InboxEntryAdded', data);
}

/** A person has fewer unread entries than before. */
export function inboxEntriesSeen(data: z.input<typeof stored.InboxEntriesSeen>) {
  return storedEvent('InboxEntriesSeen', data);
}

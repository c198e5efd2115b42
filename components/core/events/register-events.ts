import { z } from 'zod';
import { AppError } from '../errors/errors.ts';

const registerId = z.string().regex(/^[0-9a-f]{32}$/);
const hash = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);
/** W3C trace id of what led to the event; absent when nothing was traced. */
const traceId = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .optional();
/** Who is told beside those that follow the register: its subscribers at that time. */
const organizationIds = z.array(z.string().min(1)).default([]);

/** What the register service's outbox holds, by kind. Members that come later are passed over. */
const stored = {
  RegisterCreated: z.object({ registerId, organizationIds, traceId }),
  RegisterDeleted: z.object({ registerId, organizationIds, traceId }),
  RegisterAdvertised: z.object({ registerId, advertise: z.boolean() }),
  RegisterStatusChanged: z.object({ registerId, status: z.string().min(1), organizationIds, traceId }),
  RegisterSyncStateChanged: z.object({ registerId, syncState: z.string().min(1), traceId }),
  DocketSealed: z.object({
    registerId,
    docketNumber: count,
    hash,
    transactionCount: count,
    traceId,
  }),
} as const;

export type StoredEventKind = keyof typeof stored;
export type StoredEventData<K extends StoredEventKind> = z.output<(typeof stored)[K]>;

/** One row of the register service's outbox that its reader understands. */
export type StoredRegisterEvent = {
  [K in StoredEventKind]: { readonly kind: K; readonly data: StoredEventData<K> };
}[StoredEventKind];

/** Data of a kind as its schema reads it. Errors: internal/EVENT_UNREADABLE; undefined for a kind without one. */
function parseKnown(schemas: Readonly<Record<string, z.ZodType>>, kind: string, data: unknown) {
  const schema = Object.hasOwn(schemas, kind) ? schemas[kind] : undefined;
  if (schema === undefined) return undefined;
  const parsed = schema.safeParse(data);
  if (parsed.success) return { kind, data: parsed.data };
  throw new AppError('internal', 'EVENT_UNREADABLE', `an event ${kind} is not what its schema says`, {
    cause: parsed.error,
  });
}

/**
 * Reads one event of the register service's outbox; undefined for a kind that we do not know.
 * Errors: internal/EVENT_UNREADABLE when a known kind carries something else than its schema.
 */
export function parseStoredEvent(kind: string, data: unknown): StoredRegisterEvent | undefined {
  return parseKnown(stored, kind, data) as StoredRegisterEvent | undefined;
}

/** An event as the outbox takes it: the key is the register. */
function storedEvent<K extends StoredEventKind>(kind: K, data: z.input<(typeof stored)[K]>) {
  return { kind, key: data.registerId, data };
}

/** A register was created, for the organisation that owns it. */
export function registerCreated(data: z.input<typeof stored.RegisterCreated>) {
  return storedEvent('RegisterCreated', data);
}

/** A register was deleted; its subscribers until then are told. */
export function registerDeleted(data: z.input<typeof stored.RegisterDeleted>) {
  return storedEvent('RegisterDeleted', data);
}

/** A register is told of to others from now on, or not any more. */
export function registerAdvertised(data: z.input<typeof stored.RegisterAdvertised>) {
  return storedEvent('RegisterAdvertised', data);
}

/** The status of a register is another one now. */
export function registerStatusChanged(data: z.input<typeof stored.RegisterStatusChanged>) {
  return storedEvent('RegisterStatusChanged', data);
}

/** A register lacks dockets, has them again, or does not get them. */
export function syncStateChanged(data: z.input<typeof stored.RegisterSyncStateChanged>) {
  return storedEvent('RegisterSyncStateChanged', data);
}

/** What every event of the feed carries: ids, a time and a trace, never content. */
const common = {
  registerId,
  /** When the commit that led to it began. */
  occurredAt: z.iso.datetime(),
  traceId: z.string().describe('empty when nothing was traced'),
};

/** The feed of the register hub: payload of each event. Some follow from one row of the outbox. */
export const REGISTER_EVENTS = {
  RegisterCreated: z.object({ ...common, organizationIds }),
  RegisterDeleted: z.object({ ...common, organizationIds }),
  RegisterStatusChanged: z.object({ ...common, organizationIds, status: z.string().min(1) }),
  RegisterSyncStateChanged: z.object({ ...common, syncState: z.string().min(1) }),
  DocketSealed: z.object({ ...common, docketNumber: count, docketHash: hash }),
  RegisterHeightUpdated: z.object({ ...common, newHeight: count }),
  TransactionConfirmed: z.object({ ...common, transactionId: hash }),
  TransactionReceipt: z.object({
    ...common,
    transactionId: hash,
    docketNumber: count,
    receiptId: z.string().regex(/^[0-9a-f]{32}$/),
    sealedAt: z.string().min(1),
  }),
} as const;

export type RegisterEventKind = keyof typeof REGISTER_EVENTS;
export type RegisterEventData<K extends RegisterEventKind> = z.output<(typeof REGISTER_EVENTS)[K]>;

/** One event of the feed. `id` is the same whenever it is read: consumers drop what they have seen. */
export type RegisterEvent = {
  [K in RegisterEventKind]: { readonly id: string; readonly kind: K; readonly data: RegisterEventData<K> };
}[RegisterEventKind];

/**
 * Reads one event of the feed (`data` is parsed JSON); undefined for a kind that we do not know.
 * Errors: internal/EVENT_UNREADABLE when a known kind carries something else than its schema.
 */
export function parseRegisterEvent(id: string, kind: string, data: unknown): RegisterEvent | undefined {
  const known = parseKnown(REGISTER_EVENTS, kind, data);
  return known && ({ id, ...known } as RegisterEvent);
}

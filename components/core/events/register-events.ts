import { z } from 'zod';
import { AppError } from '../errors/errors.ts';

const registerId = z.string().regex(/^[0-9a-f]{32}$/);
const hash = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);
/** W3C trace id of the request that led to the event; absent when it was not traced. */
const traceId = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .optional();
/** Organisations to notify beside the subscribers of the register, as of that time. */
const organizationIds = z.array(z.string().min(1)).default([]);

/** Events in the outbox of the register service, by kind. Unknown members are ignored. */
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

type StoredEventKind = keyof typeof stored;
export type StoredEventData<K extends StoredEventKind> = z.output<(typeof stored)[K]>;

/** A parsed row of the register service's outbox. */
export type StoredRegisterEvent = {
  [K in StoredEventKind]: { readonly kind: K; readonly data: StoredEventData<K> };
}[StoredEventKind];

/** Parses the data of a kind by its schema. Errors: internal/EVENT_UNREADABLE; undefined for an unknown kind. */
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
 * Parses one event of the register service's outbox; undefined for an unknown kind.
 * Errors: internal/EVENT_UNREADABLE when the data of a known kind does not match its schema.
 */
export function parseStoredEvent(kind: string, data: unknown): StoredRegisterEvent | undefined {
  return parseKnown(stored, kind, data) as StoredRegisterEvent | undefined;
}

/** An event in the form that the outbox stores. The key is the register. */
function storedEvent<K extends StoredEventKind>(kind: K, data: z.input<(typeof stored)[K]>) {
  return { kind, key: data.registerId, data };
}

/** A register was created, for the organisation that owns it. */
export function registerCreated(data: z.input<typeof stored.RegisterCreated>) {
  return storedEvent('RegisterCreated', data);
}

/** A register was deleted. The organisations that subscribed until then are notified. */
export function registerDeleted(data: z.input<typeof stored.RegisterDeleted>) {
  return storedEvent('RegisterDeleted', data);
}

/** The register is advertised from now on, or no longer. */
export function registerAdvertised(data: z.input<typeof stored.RegisterAdvertised>) {
  return storedEvent('RegisterAdvertised', data);
}

/** The status of a register changed. */
export function registerStatusChanged(data: z.input<typeof stored.RegisterStatusChanged>) {
  return storedEvent('RegisterStatusChanged', data);
}

/** The sync state of a register changed: recovering, synced or stalled. */
export function syncStateChanged(data: z.input<typeof stored.RegisterSyncStateChanged>) {
  return storedEvent('RegisterSyncStateChanged', data);
}

/** Members of every event of the feed: ids, a time and a trace, never content. */
const common = {
  registerId,
  /** Start of the commit that led to the event. */
  occurredAt: z.iso.datetime(),
  traceId: z.string().describe('empty when nothing was traced'),
};

/** The feed of the register hub: payload of each event. One row of the outbox may give several events. */
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

/** One event of the feed. Its `id` is stable, so consumers can drop repetitions. */
export type RegisterEvent = {
  [K in RegisterEventKind]: { readonly id: string; readonly kind: K; readonly data: RegisterEventData<K> };
}[RegisterEventKind];

/**
 * Parses one event of the feed (`data` is parsed JSON); undefined for an unknown kind.
 * Errors: internal/EVENT_UNREADABLE when the data of a known kind does not match its schema.
 */
export function parseRegisterEvent(id: string, kind: string, data: unknown): RegisterEvent | undefined {
  const known = parseKnown(REGISTER_EVENTS, kind, data);
  return known && ({ id, ...known } as RegisterEvent);
}

import { z } from 'zod';
import { AppError } from '../errors/errors.ts';

const registerId = z.string().regex(/^[0-9a-f]{32}$/);
const txId = z.string().regex(/^[0-9a-f]{64}$/);
const actionId = z.int().min(0);
/** Address of a wallet that takes part; the key of the row. */
const wallet = z.string();
/** W3C trace id; absent when nothing was traced. */
const traceId = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .optional();

/** Events in the outbox of the blueprint service, by kind. Unknown members are ignored. */
const stored = {
  /** A step of an instance is sealed: one row for each wallet that takes part. */
  StepSealed: z.object({
    wallet,
    registerId,
    instanceId: z.uuid(),
    txId,
    actionId,
    isRejection: z.boolean(),
    /** Actions that the step made available to the wallet. */
    available: z.array(actionId),
    hasEnded: z.boolean(),
    traceId,
  }),
  /** Progress of an operation, for the wallet that submitted it. */
  OperationChanged: z.object({
    wallet,
    operationId: z.uuid(),
    progress: z.enum(['Encrypting', 'Encrypted', 'Failed']),
    traceId,
  }),
} as const;

type StoredKind = keyof typeof stored;

/** A parsed row of the blueprint service's outbox. */
export type BlueprintEvent = {
  [K in StoredKind]: { readonly kind: K; readonly data: z.output<(typeof stored)[K]> };
}[StoredKind];

/**
 * Parses one event of the blueprint service's outbox; undefined for an unknown kind.
 * Errors: internal/EVENT_UNREADABLE when the data of a known kind does not match its schema.
 */
export function parseBlueprintEvent(kind: string, data: unknown): BlueprintEvent | undefined {
  const schema = isStoredKind(kind) ? stored[kind] : undefined;
  if (schema === undefined) return undefined;
  const parsed = schema.safeParse(data);
  if (parsed.success) return { kind, data: parsed.data } as BlueprintEvent;
  throw new AppError('internal', 'EVENT_UNREADABLE', `an event ${kind} is not what its schema says`, {
    cause: parsed.error,
  });
}

function isStoredKind(kind: string): kind is StoredKind {
  return Object.hasOwn(stored, kind);
}

/** An event in the form that the outbox stores. The key is the wallet, so that a replay for it reads its rows alone. */
export function blueprintEvent<K extends StoredKind>(kind: K, data: z.input<(typeof stored)[K]>) {
  return { kind, key: data.wallet, data };
}

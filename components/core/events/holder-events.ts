import { z } from 'zod';
import { AppError } from '../errors/errors.ts';

/** Platform user. */
const person = z.string().min(1).max(128);
/** W3C trace id; absent when nothing was traced. */
const traceId = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .optional();

const ofCredential = z.object({
  /** Bech32m address of the wallet that has the credential. */
  walletAddress: z.string().min(1).max(100),
  /** The person whose wallet it is; absent when it is that of an organisation or of a service. */
  platformUserId: person.optional(),
  credentialId: z.string().min(1).max(200),
  traceId,
});

/** Events in the outbox of the wallet service for holders of credentials, by kind. Unknown members are ignored. */
const stored = {
  /** A device of a person may not act for them any more. */
  DeviceRevoked: z.object({ platformUserId: person, deviceId: z.guid(), traceId }),
  /** A wallet has a new credential. */
  CredentialAvailable: ofCredential,
  /** The status of a credential of a wallet changed. */
  CredentialStatusChanged: ofCredential,
} as const;

type StoredKind = keyof typeof stored;

/** Kinds of the events for holders. */
export const HOLDER_EVENTS = Object.keys(stored) as readonly StoredKind[];

/** A parsed row of the wallet service's outbox for a holder. */
export type HolderEvent = {
  [K in StoredKind]: { readonly kind: K; readonly data: z.output<(typeof stored)[K]> };
}[StoredKind];

/**
 * Parses one event of the wallet service's outbox; undefined for any other kind.
 * Errors: internal/EVENT_UNREADABLE when the data of a known kind does not match its schema.
 */
export function parseHolderEvent(kind: string, data: unknown): HolderEvent | undefined {
  const schema = isStoredKind(kind) ? stored[kind] : undefined;
  if (schema === undefined) return undefined;
  const parsed = schema.safeParse(data);
  if (parsed.success) return { kind, data: parsed.data } as HolderEvent;
  throw new AppError('internal', 'EVENT_UNREADABLE', `an event ${kind} is not what its schema says`, {
    cause: parsed.error,
  });
}

function isStoredKind(kind: string): kind is StoredKind {
  return Object.hasOwn(stored, kind);
}

/** An event in the form that the outbox stores. The key is the person, or the wallet where that is no person's. */
function storedEvent<K extends StoredKind>(kind: K, key: string, data: z.input<(typeof stored)[K]>) {
  return { kind, key, data };
}

/** A device of a person was revoked. */
export function deviceRevoked(data: z.input<typeof stored.DeviceRevoked>) {
  return storedEvent('DeviceRevoked', data.platformUserId, data);
}

/** A wallet has a new credential. */
export function credentialAvailable(data: z.input<typeof ofCredential>) {
  return storedEvent('CredentialAvailable', data.platformUserId ?? data.walletAddress, data);
}

/** A credential of a wallet was suspended, reinstated, revoked or used up, or it expired. */
export function credentialStatusChanged(data: z.input<typeof ofCredential>) {
  return storedEvent('CredentialStatusChanged', data.platformUserId ?? data.walletAddress, data);
}

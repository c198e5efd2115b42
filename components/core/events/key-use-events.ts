import { z } from 'zod';
import { AppError } from '../errors/errors.ts';

/** Kind of the wallet service's event about the content keys that one call unwrapped; it names none of them. */
export const KEYS_UNWRAPPED = 'WalletKeysUnwrapped';

const keysUnwrappedSchema = z.object({
  walletId: z.uuid(),
  /** Bech32m address. */
  address: z.string().min(1).max(100),
  /** The organisation that owns the wallet, else the caller's; null without one. */
  organizationId: z.guid().nullable(),
  /** The person who reads; null for a service. */
  platformUserId: z.string().min(1).max(128).nullable(),
  /** Client id of the service that called. */
  service: z.string().min(1).max(128),
  /** Number of keys in the call, and of those that were unwrapped. */
  requested: z.int().positive(),
  unwrapped: z.int().nonnegative(),
  occurredAt: z.iso.datetime(),
});
export type KeysUnwrapped = z.output<typeof keysUnwrappedSchema>;

/**
 * Parses an event of the wallet service's outbox; undefined for another kind.
 * Errors: internal/EVENT_UNREADABLE when the data does not match the schema.
 */
export function parseKeysUnwrapped(kind: string, data: unknown): KeysUnwrapped | undefined {
  if (kind !== KEYS_UNWRAPPED) return undefined;
  const parsed = keysUnwrappedSchema.safeParse(data);
  if (parsed.success) return parsed.data;
  throw new AppError('internal', 'EVENT_UNREADABLE', `an event ${kind} is not what its schema says`, {
    cause: parsed.error,
  });
}

import { z } from 'zod';
import { AppError } from '../errors/errors.ts';

/** Kind of the wallet service's event about a change of a wallet of an organisation, for its audit log. */
export const WALLET_CHANGED = 'OrganizationWalletChanged';

const walletChangedSchema = z.object({
  walletId: z.uuid(),
  /** Bech32m address. */
  address: z.string().min(1).max(100),
  organizationId: z.guid(),
  /** The person who changed it. */
  platformUserId: z.string().min(1).max(128),
  /** What was done, such as `KeyDerived`; an open text. */
  act: z.string().min(1).max(100),
  occurredAt: z.iso.datetime(),
});
export type WalletChanged = z.output<typeof walletChangedSchema>;

/**
 * Parses an event of the wallet service's outbox; undefined for another kind.
 * Errors: internal/EVENT_UNREADABLE when the data does not match the schema.
 */
export function parseWalletChanged(kind: string, data: unknown): WalletChanged | undefined {
  if (kind !== WALLET_CHANGED) return undefined;
  const parsed = walletChangedSchema.safeParse(data);
  if (parsed.success) return parsed.data;
  throw new AppError('internal', 'EVENT_UNREADABLE', `an event ${kind} is not what its schema says`, {
    cause: parsed.error,
  });
}

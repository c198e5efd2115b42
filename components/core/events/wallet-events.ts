import { z } from 'zod';
import { AppError } from '../errors/errors.ts';

/** Kinds of the wallet service's events: a wallet was created or recovered; it was locked, unlocked or deleted. */
export const WALLET_EVENTS = ['WalletCreated', 'WalletStatusChanged'] as const;
export type WalletEventKind = (typeof WALLET_EVENTS)[number];

/**
 * Facts of a wallet after the change. Owner kinds and states are open texts, so that a reader survives new ones: only
 * `User` is a person and only `Active` may be used.
 */
const walletFactSchema = z.object({
  walletId: z.uuid(),
  /** Bech32m address. */
  address: z.string().min(1).max(100),
  /** `User` or `Organization`. */
  ownerKind: z.string().min(1),
  /** Platform user of a `User` wallet, organisation of an `Organization` wallet. */
  ownerId: z.string().min(1).max(128),
  /** `Active`, `Locked` or `Deleted`. */
  status: z.string().min(1),
  /** Order of the wallets of one owner; equal instants are ordered by `walletId`. */
  createdAt: z.iso.datetime(),
});
export type WalletFact = z.output<typeof walletFactSchema>;

/** Kind of the event of a revoked identity key of an organisation, for the readers of DID documents. */
export const WALLET_KEY_REVOKED = 'wallet.key.revoked';

const walletKeyRevokedSchema = z.object({
  derivedKeyId: z.uuid(),
  walletAddress: z.string().min(1).max(100),
  did: z.string().min(1).max(200),
  revokedAt: z.iso.datetime(),
});
export type WalletKeyRevoked = z.output<typeof walletKeyRevokedSchema>;

/**
 * Parses an event of a revoked identity key (`data` is parsed JSON); undefined for another kind.
 * Errors: internal/EVENT_UNREADABLE when the data does not match the schema.
 */
export function parseWalletKeyRevoked(kind: string, data: unknown): WalletKeyRevoked | undefined {
  if (kind !== WALLET_KEY_REVOKED) return undefined;
  const parsed = walletKeyRevokedSchema.safeParse(data);
  if (parsed.success) return parsed.data;
  throw unreadable(kind, parsed.error);
}

/** A parsed event of the wallet service. */
export interface WalletEvent {
  readonly kind: WalletEventKind;
  readonly fact: WalletFact;
}

/**
 * Parses one event of the wallet service's outbox (`data` is parsed JSON); undefined for an unknown kind.
 * Errors: internal/EVENT_UNREADABLE when the data of a known kind does not match its schema.
 */
export function parseWalletEvent(kind: string, data: unknown): WalletEvent | undefined {
  const known = WALLET_EVENTS.find((one) => one === kind);
  if (known === undefined) return undefined;
  const parsed = walletFactSchema.safeParse(data);
  if (parsed.success) return { kind: known, fact: parsed.data };
  throw unreadable(kind, parsed.error);
}

function unreadable(kind: string, cause: unknown): AppError {
  return new AppError('internal', 'EVENT_UNREADABLE', `an event ${kind} is not what its schema says`, {
    cause,
  });
}

import { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { readableName, readableText } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier as organizationIdentifier } from '#core/identity/identifier.ts';
import { algorithmOf, type Wallet } from './wallet.ts';

/** The specification names both prefixes; they reach the same handlers. */
export const WALLET_PREFIXES = ['/api/wallets', '/api/v1/wallets'] as const;
export type WalletPrefix = (typeof WALLET_PREFIXES)[number];

const keyType = z.enum(['ED25519', 'NISTP256', 'RSA']);

/** Operation ids are unique, so those of the second prefix end in `V1`. */
export function operationIdUnder(prefix: WalletPrefix, operationId: string): string {
  return prefix === '/api/wallets' ? operationId : `${operationId}V1`;
}

const title = readableName.max(100).trim().min(1);
const description = readableText.max(500);
const passphrase = z.string().max(256).describe('BIP-39 passphrase; never stored.');

export const createBody = z.object({
  title,
  description: description.optional(),
  keyType,
  organizationId: organizationIdentifier.optional().describe('Makes the wallet of this organisation.'),
  wordCount: z.union([z.literal(12), z.literal(24)]).default(24),
  passphrase: passphrase.default(''),
});

export const recoverBody = z.object({
  title: title.default('Recovered wallet'),
  description: description.optional(),
  keyType,
  mnemonic: z.string().min(1).max(500),
  passphrase: passphrase.default(''),
  organizationId: organizationIdentifier
    .optional()
    .describe('Recovers the wallet of this organisation, for its Administrators.'),
});

/** A change of a wallet; at least one member. */
export const changeBody = z
  .object({
    title: title.optional(),
    description: description.nullable().optional().describe('null removes the description.'),
    status: z
      .enum(['Active', 'Locked'])
      .optional()
      .describe('Locks or unlocks: a locked wallet neither signs nor decrypts.'),
  })
  .refine((change) => Object.values(change).some((value) => value !== undefined), 'changes nothing');

/** A wallet id, an address or a platform user; any other text matches no wallet. */
export const identifier = z.string().regex(/^[A-Za-z0-9-]{1,128}$/);

export const walletParams = z.object({ id: identifier.describe('Wallet id or address.') });

export const walletSchema = z.object({
  id: z.string(),
  walletAddress: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  keyType,
  algorithm: z.string(),
  publicKey: z.string().describe('Base64: 32 bytes for Ed25519, SPKI DER otherwise.'),
  encryptionPublicKey: z.string().nullable().describe('Base64: X25519 or P-256 SPKI of the encryption key.'),
  owner: z.string().describe('Platform user, organisation or service.'),
  ownerKind: z.enum(['User', 'Organization', 'System', 'Service', 'Derived']),
  organizationId: z.string().nullable(),
  status: z.enum(['Active', 'Locked', 'Deleted']),
  keyStatus: z
    .enum(['Active', 'Rotated', 'Revoked'])
    .nullable()
    .describe('State of a derived key; null for other wallets.'),
  createdAt: z.string(),
});

export const createdWalletSchema = walletSchema.extend({
  mnemonic: z.string().optional().describe('Shown once; absent for RSA and for a repeated Idempotency-Key.'),
});

function ownerOf(wallet: Wallet): string {
  const { ownerUserId, ownerOrganizationId, systemIdentity, ownerService } = wallet;
  return ownerUserId ?? ownerOrganizationId ?? systemIdentity ?? ownerService ?? '';
}

export function presentWallet(wallet: Wallet): z.input<typeof walletSchema> {
  return {
    id: wallet.id,
    walletAddress: wallet.address,
    title: wallet.title,
    description: wallet.description ?? null,
    keyType: wallet.keyType,
    algorithm: algorithmOf(wallet.keyType),
    publicKey: encodeBase64(wallet.publicKey),
    encryptionPublicKey: wallet.encryptionKey === undefined ? null : encodeBase64(wallet.encryptionKey),
    owner: ownerOf(wallet),
    ownerKind: wallet.kind,
    organizationId: wallet.ownerOrganizationId ?? null,
    status: wallet.status,
    keyStatus: wallet.keyStatus ?? null,
    createdAt: apiTimestamp(wallet.createdAtMs),
  };
}

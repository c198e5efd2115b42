import { z } from 'zod';
import { isWalletAddress } from '#core/crypto/address.ts';
import { sha256 } from '#core/crypto/hash.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { identifier } from '#core/identity/identifier.ts';
import { ROSTER_ROLES } from '#core/ledger/owner-attestation.ts';
import { knownDescription, knownMetadata, knownTitle } from '../state/texts.ts';

export const address = z.string().refine(isWalletAddress, 'expected a wallet address');
export const validatorIdText = z.string().regex(/^[A-Za-z0-9._-]{1,128}$/);
const registerIdText = z
  .string()
  .regex(/^[0-9a-fA-F]{32}$/)
  .transform((text) => text.toLowerCase());
export const uidText = identifier;

const owner = z.union([
  z.strictObject({ walletAddress: address }),
  z.strictObject({ operatorWallet: z.literal(true).describe("The caller's own wallet.") }),
]);

export const attestationBody = z.strictObject({
  walletAddress: address,
  role: z.enum(ROSTER_ROLES),
  publicKey: z.string().min(1).max(1024),
  signature: z.string().min(1).max(1024).describe('base64, over the 32 bytes of dataToSign'),
  algorithm: z.string().min(1).max(32),
});
export type GivenAttestation = z.output<typeof attestationBody>;

/** The spec of a Register resource. */
export const specBody = z.strictObject({
  title: knownTitle,
  description: knownDescription.optional(),
  purpose: z.enum(['General', 'System']).default('General'),
  organizationId: uidText.optional(),
  owners: z
    .array(owner)
    .length(1)
    .default([{ operatorWallet: true }]),
  admins: z
    .array(
      z.strictObject({
        walletAddress: address,
        role: z.enum(['Admin', 'Auditor', 'Designer']).default('Admin'),
      }),
    )
    .max(24)
    .default([]),
  devMode: z.boolean().default(false),
  metadata: knownMetadata.default({}),
  policy: z.record(z.string(), z.unknown()).default({}),
  validators: z
    .array(validatorIdText)
    .min(1)
    .max(100)
    .refine((ids) => new Set(ids).size === ids.length, 'names a validator twice'),
  registerId: registerIdText.optional().describe('An existing register to adopt.'),
  replaces: uidText.optional().describe('The UID that an adoption takes the register from.'),
  attestations: z.array(attestationBody).max(25).default([]),
});
export type RegisterSpec = z.output<typeof specBody>;

/** Hash of the parts of a spec that the draft depends on: another spec gives another draft with new attestations. */
export function specHash(spec: RegisterSpec): Buffer {
  const { title, description, devMode, metadata, policy, owners, admins } = spec;
  const drawn = { title, description, devMode, metadata, policy, owners, admins };
  return Buffer.from(sha256(canonicalJson(drawn)));
}

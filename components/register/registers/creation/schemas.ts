import { z } from 'zod';
import { ROSTER_ROLES } from '#core/ledger/owner-attestation.ts';
import { registerPurposes } from '../state/store.ts';

const text = z.string();
const instant = text.describe('ISO 8601, UTC.');

/** An attestation that a member of the roster must sign. */
export const requestedAttestationSchema = z
  .object({
    userId: text.optional(),
    walletId: text.describe('The wallet to sign with.'),
    derivationPath: text.optional().describe("Its key, where it is not the wallet's own."),
    walletAddress: text.describe('Address of the key that signs.'),
    role: z.enum(ROSTER_ROLES),
    attestationData: z.object({
      role: z.enum(ROSTER_ROLES),
      subject: text.describe('DID of the member.'),
      registerId: text,
      registerName: text,
      grantedAt: text.describe('ISO 8601, as it is signed.'),
    }),
    dataToSign: text.describe('The 32 bytes to sign, in hex.'),
  })
  .meta({ id: 'RequestedAttestation' });

/** What initiate answers. */
export const registrationSchema = z
  .object({
    id: text.describe('The same as registerId.'),
    registerId: text,
    title: text,
    purpose: z.enum(registerPurposes),
    createdAt: instant,
    expiresAt: instant,
    nonce: text.describe('Finalize takes it.'),
    attestationsToSign: z.array(requestedAttestationSchema),
  })
  .meta({ id: 'Registration' });

/** What finalize answers for a register that has begun. */
export const begunSchema = z
  .object({
    registerId: text,
    id: text.describe('The same as registerId.'),
    status: z.literal('created'),
    genesisTransactionId: text,
    genesisDocketId: z.literal('0'),
    createdAt: instant,
  })
  .meta({ id: 'CreatedRegister' });

export type Begun = z.output<typeof begunSchema>;

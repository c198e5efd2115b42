import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';

const text = z.string();
const count = z.int().min(0);
const rootsShape = { docketHash: text, merkleRoot: text, logRoot: text };

const signedMessageSchema = z
  .object({
    type: z.int().min(1).max(3).describe('1 proposal, 2 prevote, 3 precommit'),
    networkId: text,
    registerId: text,
    height: count,
    round: count,
    polRound: z.int().min(-1),
    docket: z.object(rootsShape).nullable().describe('null in a vote for nil'),
    validatorSetHash: text,
    timestamp: text,
    signBytes: text.describe('base64 of the bytes that the signature is over'),
    signature: text.describe('base64'),
  })
  .describe('a signed message of the consensus')
  .meta({ id: 'SignedConsensusMessage' });

const conflictingCertificateSchema = z
  .object({
    networkId: text,
    version: z.literal(1),
    height: count,
    round: count,
    ...rootsShape,
    validatorSetHash: text,
    signatures: z.array(z.object({ validatorId: text, index: count, timestamp: text, signature: text })),
  })
  .describe('a certificate of a docket')
  .meta({ id: 'NetworkCertificate' });

const proofSchema = z.union([signedMessageSchema, conflictingCertificateSchema]);

const entrySchema = z.object({
  id: text.describe('one per position at which a validator signs once'),
  kind: z.enum(['duplicate-proposal', 'duplicate-vote', 'conflicting-certificate']),
  validatorId: text.nullable().describe('null for conflicting certificates'),
  validatorIds: z.array(text).describe('whom it convicts'),
  height: count,
  round: count.nullable(),
  step: z.enum(['proposal', 'prevote', 'precommit']).nullable(),
  signers: z
    .array(z.object({ validatorId: text, publicKey: text, algorithm: z.enum(ALGORITHMS) }))
    .describe('members whose keys verify the signatures; for two certificates the full set'),
  first: proofSchema,
  second: proofSchema,
  heldBy: z.array(text).describe('members that have it in their log'),
  firstSeenAt: text.describe('ISO 8601, UTC.'),
  proposalId: text.nullable().describe('the open proposal to suspend the validator for such evidence'),
});

export const evidenceSchema = z.object({
  registerId: text,
  evidence: z.array(entrySchema),
  unreachable: z.array(text).describe('members that did not answer'),
});

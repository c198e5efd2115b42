import { z } from 'zod';
import { certificateSchema } from '../../ledger/dockets/schemas.ts';

const text = z.string();
const hash = text.describe('64 lower-case hex digits.');
const path = z.array(z.object({ hash, position: z.enum(['Left', 'Right']) }));

/** Proof that a transaction is in the tree of its docket. */
const proofFields = {
  transactionHash: hash.describe('Leaf hash of the record.'),
  docketNumber: z.int(),
  merkleRoot: hash,
  proofPath: path,
  leafIndex: z.int(),
  treeSize: z.int(),
};

/** Proof that a transaction is sealed: docket tree, register log, certificate, checkpoint. */
export const inclusionProofSchema = z
  .object({
    ...proofFields,
    docketHash: hash,
    logProof: z
      .object({ leafIndex: z.int(), treeSize: z.int(), path })
      .describe('From the docket to the root of the register log, at the size of the checkpoint.'),
    certificate: certificateSchema,
    checkpoint: text.nullable().describe('C2SP checkpoint; null while it cannot be signed.'),
  })
  .meta({ id: 'InclusionProof' });

export const receiptSchema = z
  .object({
    receiptId: text,
    transactionId: text,
    registerId: text,
    docketNumber: z.int(),
    docketHash: hash,
    merkleRoot: hash,
    inclusionProof: z.object(proofFields),
    signatures: z.array(
      z.object({
        validatorId: text,
        validatorAddress: text.describe('Empty when the validator is unknown at that height.'),
        signatureValue: text.describe('Base64.'),
        algorithm: text,
        signedAt: text,
      }),
    ),
    attestations: z.array(
      z.object({
        validatorAddress: text,
        signatureValue: text.describe('Base64.'),
        algorithm: text,
        signedAt: text,
      }),
    ),
    sealedAt: text.describe('ISO 8601, as it is hashed.'),
    storedAt: text.describe('ISO 8601, UTC.'),
    version: z.literal(1),
  })
  .meta({ id: 'TransactionReceipt' });

export const consistencyProofSchema = z
  .object({ from: z.int(), to: z.int(), path: z.array(hash) })
  .meta({ id: 'ConsistencyProof' });

export const checkedProofSchema = z.object({
  isValid: z.boolean(),
  computedRoot: hash.nullable().describe('Null when the path does not have the shape for that leaf.'),
  ledgerAnchored: z
    .enum(['verified', 'failed'])
    .nullable()
    .describe('Whether the ledger knows the root; null when no docket was named.'),
  ledgerAnchorReason: text,
});

import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { isAppError } from '#core/errors/errors.ts';

const text = (max: number) => z.string().max(max);
const hash = z
  .string()
  .regex(/^[0-9a-fA-F]{64}$/, 'expected 64 hexadecimal characters')
  .transform((value) => value.toLowerCase());
const count = z.int().min(0);
const base64 = text(8 * 1024 * 1024).transform((value, context) => {
  try {
    return decodeBase64Any(value);
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    context.addIssue('expected base64');
    return z.NEVER;
  }
});
const record = z.record(z.string(), z.unknown()).transform((value, context) => {
  try {
    return canonicalBytes(value);
  } catch (error) {
    if (!isAppError(error)) throw error;
    context.addIssue(error.message);
    return z.NEVER;
  }
});
const voteSchema = z.object({
  docketHash: hash,
  validatorId: text(128),
  validatorAddress: text(128),
  approved: z.boolean(),
  timestamp: text(64),
  signature: text(1_024),
  algorithm: z.enum(ALGORITHMS),
  publicKey: text(1_024),
  reason: text(1_024).optional(),
});
const certificateSchema = z.object({
  version: z.literal(1),
  height: count,
  round: count,
  docketHash: hash,
  merkleRoot: hash,
  logRoot: hash,
  validatorSetHash: hash,
  signatures: z
    .array(z.object({ validatorId: text(128), index: count, timestamp: text(64), signature: text(1_024) }))
    .max(100),
});

/** Body of `POST /api/validation/dockets/validate`: a docket as the register service returns it. */
export const validateBody = z.object({
  docket: z.object({
    registerId: text(64).default(''),
    docketNumber: z.int(),
    previousHash: text(64),
    timestamp: text(64),
    validatorAddress: text(128),
    transactionIds: z.array(text(64)).max(10_000),
    hash: text(64),
    merkleRoot: text(64),
    logRoot: text(64).default(''),
    validatorSetHash: text(64).default(''),
    genesisConfig: text(65_536).optional(),
    sizeBytes: count.default(0),
    certificate: certificateSchema.optional(),
    consensusVotes: z.array(voteSchema).max(100).default([]),
    transactions: z
      .array(
        z.object({
          record: z.union([base64, record]).describe('the sealed record, or base64 of its bytes'),
          payload: base64.describe('base64 of the hashed bytes'),
        }),
      )
      .max(10_000)
      .optional()
      .describe('the Merkle root and the signatures are judged when transactions are given'),
  }),
  previousDocket: z
    .object({ docketNumber: count, hash, timestamp: text(64) })
    .optional()
    .describe('the preceding docket; the last one of the register when absent'),
});

export type ValidatedBody = z.output<typeof validateBody>;
export type SubmittedDocket = ValidatedBody['docket'];

import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import type { DocketBundle } from '../dockets/docket.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/, 'expected 64 lower-case hex characters');
const base64 = z.string().transform((text, context) => {
  try {
    return decodeBase64Any(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'expected base64' });
    return z.NEVER;
  }
});

const voteSchema = z.object({
  docketHash: hash,
  validatorId: z.string().min(1).max(128),
  validatorAddress: z.string().min(1).max(128),
  approved: z.boolean(),
  timestamp: z.string().min(1).max(64),
  signature: z.string().regex(/^[0-9a-f]+$/),
  algorithm: z.enum(ALGORITHMS),
  publicKey: z.string().min(1).max(1024),
  reason: z.string().max(1024).optional(),
});

const certificateSchema = z.object({
  version: z.literal(1),
  height: z.int().min(0),
  round: z.int().min(0),
  docketHash: hash,
  merkleRoot: hash,
  logRoot: hash,
  validatorSetHash: hash,
  signatures: z
    .array(
      z.object({
        validatorId: z.string().min(1).max(128),
        index: z.int().min(0),
        timestamp: z.string().min(1).max(64),
        signature: z.string().min(1).max(1024),
      }),
    )
    .max(100),
});

const sealedTransactionSchema = z.object({
  record: z
    .union([base64, z.record(z.string(), z.unknown()).transform((value) => canonicalBytes(value))])
    .describe('The sealed record: the object, or base64 of its canonical JSON.'),
  payload: base64.describe('Base64 of the exact hashed bytes of the payload.'),
  payloadHashForm: z.enum(['jcs', 'compact']).default('jcs'),
});

/** Body of POST /dockets: the docket as GET answers it, with the records and payloads of its transactions. */
export const docketBody = z.object({
  docketNumber: z.int().min(0),
  previousHash: hash,
  timestamp: z.string().min(1).max(64),
  validatorAddress: z.string().min(1).max(128),
  transactionIds: z.array(hash).min(1).max(10_000),
  merkleRoot: hash,
  logRoot: hash,
  validatorSetHash: hash,
  hash,
  isGenesis: z.boolean().default(false),
  genesisConfig: z.string().max(65_536).optional(),
  sizeBytes: z.int().min(0),
  certificate: certificateSchema,
  consensusVotes: z.array(voteSchema).max(100).default([]),
  transactions: z.array(sealedTransactionSchema).min(1).max(10_000),
});

export function bundleOfBody(registerId: string, body: z.output<typeof docketBody>): DocketBundle {
  const { certificate, consensusVotes, transactions, genesisConfig, ...header } = body;
  return {
    header: { ...header, registerId, ...(genesisConfig !== undefined && { genesisConfig }) },
    certificate,
    transactions,
    attestations: consensusVotes,
  };
}

const exampleHash = (byte: string) => byte.repeat(32);

/** An example of the body; its hashes and signatures are made up. */
export const docketExample: z.input<typeof docketBody> = {
  docketNumber: 7,
  previousHash: exampleHash('a1'),
  timestamp: '2026-05-04T09:30:00.0000000Z',
  validatorAddress: 'w1quj8qvh6u2mlj6fnjx0953fsvlkhcepkg4j9d5f5zfvtnume7ap4q47gykc',
  transactionIds: [exampleHash('b2')],
  merkleRoot: exampleHash('c3'),
  logRoot: exampleHash('d4'),
  validatorSetHash: exampleHash('e5'),
  hash: exampleHash('f6'),
  sizeBytes: 812,
  certificate: {
    version: 1,
    height: 7,
    round: 0,
    docketHash: exampleHash('f6'),
    merkleRoot: exampleHash('c3'),
    logRoot: exampleHash('d4'),
    validatorSetHash: exampleHash('e5'),
    signatures: [
      {
        validatorId: 'validator-0',
        index: 0,
        timestamp: '2026-05-04T09:30:00.1000000Z',
        signature: 'c2lnbmF0dXJl',
      },
    ],
  },
  transactions: [{ record: 'eyJhY3Rpb25JZCI6IjEifQ==', payload: 'eyJhbW91bnQiOjEyfQ==' }],
};

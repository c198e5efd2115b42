import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';

const hash = z.string().describe('64 lower-case hex digits.');
const text = z.string();
const docketNumber = z.int();
const address = text.describe("Address of the validator's key.");
const timestamp = text.describe('ISO 8601, as it is signed.');

export const certificateSchema = z
  .object({
    version: z.literal(1),
    height: z.int(),
    round: z.int(),
    docketHash: hash,
    merkleRoot: hash,
    logRoot: hash,
    validatorSetHash: hash,
    signatures: z
      .array(
        z.object({
          validatorId: text,
          index: z.int().describe('Index of the member in the set sorted by validatorId.'),
          timestamp,
          signature: text.describe('Base64.'),
        }),
      )
      .describe('Ascending by index.'),
  })
  .describe('Proof that a quorum of one validator set decided a docket in one round.')
  .meta({ id: 'ConsensusCertificate' });

/** A docket that is not stored, as a conflict shows it. */
export const docketHeaderSchema = z
  .object({
    registerId: text,
    docketNumber,
    previousHash: hash,
    timestamp,
    validatorAddress: address,
    transactionIds: z.array(text),
    hash,
    merkleRoot: hash,
    logRoot: hash,
    validatorSetHash: hash,
    isGenesis: z.boolean(),
    genesisConfig: text.optional(),
    sizeBytes: z.int(),
  })
  .meta({ id: 'DocketHeader' });

const voteSchema = z
  .object({
    voteId: text,
    docketHash: hash,
    validatorId: text,
    validatorAddress: address,
    approved: z.boolean(),
    timestamp,
    signature: text.describe('Lower-case hex.'),
    algorithm: z.enum(ALGORITHMS),
    publicKey: text.describe('Base64.'),
    reason: text.optional(),
  })
  .meta({ id: 'ConsensusVote' });

/** A docket in answers: without the ids of its transactions. */
export const docketSchema = z
  .object({
    docketId: text.describe('The docket number as text.'),
    registerId: text,
    docketNumber,
    hash,
    previousHash: text.describe('Hash of the previous docket; 64 zeros for docket 0.'),
    merkleRoot: hash,
    logRoot: hash,
    transactionCount: z.int(),
    timestamp,
    validatorAddress: address,
    isGenesis: z.boolean(),
    genesisConfig: text.optional().describe('Of docket 0 only.'),
    state: text.describe('Sealed: no other docket is stored.'),
    consensusState: text.describe('Achieved: no other docket is stored.'),
    consensusVotes: z.array(voteSchema),
    certificate: certificateSchema,
    validatorSetHash: hash,
    sizeBytes: z.int(),
  })
  .meta({ id: 'Docket' });

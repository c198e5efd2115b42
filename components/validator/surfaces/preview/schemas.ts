import { z } from 'zod';

const text = z.string();
const count = z.int().min(0);
const optional = text.nullable();
const time = text.describe('ISO 8601, UTC.');

const findingSchema = z.object({
  code: text,
  message: text,
  field: text.optional(),
  severity: z.enum(['Warning', 'Error', 'Critical']),
});

export const buildBody = z.strictObject({
  registerId: text,
  validatorWalletAddress: text.max(128).default(''),
  maxTransactions: z.int().min(1).max(10_000).optional(),
  seal: z.boolean().default(false).describe('requires the permission to manage registers; services have it'),
});

const docketSchema = z
  .object({
    docketId: text,
    registerId: text,
    docketNumber: count,
    hash: text,
    previousHash: text,
    merkleRoot: text,
    logRoot: text,
    transactionCount: count,
    timestamp: time,
    validatorAddress: text,
    transactionIds: z.array(text),
    isGenesis: z.boolean(),
    genesisConfig: text.optional(),
    state: z.enum(['Init', 'Sealed']),
    consensusState: z.enum(['Pending', 'Achieved']),
    validatorSetHash: text,
    sizeBytes: count,
  })
  .meta({ id: 'BuiltDocket' });

export const builtSchema = z.object({
  isSuccess: z.boolean().describe('false when no waiting transaction may be sealed'),
  docket: docketSchema.nullable(),
  metrics: z.object({
    transactionsProcessed: count,
    transactionsIncluded: count,
    transactionsRejected: count,
    buildDuration: text.describe('hh:mm:ss.fffffff'),
    docketSizeBytes: count,
  }),
});

export const validatedSchema = z.object({
  isValid: z.literal(true),
  errors: z.array(findingSchema).describe('warnings'),
  validationDuration: text.describe('hh:mm:ss.fffffff'),
});

/** Of the reference only: the exact text of the payload is hashed. */
export const addBody = z.object({
  transaction: z.object({
    txId: text,
    registerId: text,
    senderAddress: text,
    payload: z.unknown().describe('any JSON value'),
    payloadHash: text.optional().describe('hash of the canonical payload when absent'),
    timestamp: text,
    signature: z.object({ publicKey: text, signatureValue: text, algorithm: text }),
    previousTxId: text.optional(),
    blueprintId: text.optional(),
    actionId: text.optional(),
    expiresAt: text.optional(),
    metadata: z.record(text, text).optional(),
    recipients: z.array(text).optional(),
  }),
});

export const addedSchema = z.object({
  accepted: z.literal(true),
  memPoolSize: count,
  estimatedInclusionTime: text.describe('hh:mm:ss'),
});

export const waitingSchema = z
  .object({
    transactionId: text,
    txId: text,
    registerId: text,
    transactionType: text,
    senderAddress: text,
    recipients: z.array(text),
    timestamp: text.describe('ISO 8601, as the sender wrote it'),
    docketId: text.nullable().describe('null until the transaction is sealed'),
    docketNumber: count.nullable().describe('null until the transaction is sealed'),
    status: z.literal('pending'),
    previousTransactionId: optional,
    blueprintId: optional,
    actionId: optional,
    payloadHash: text,
    payloadSize: count,
    metadata: z.record(text, text),
    addedAt: time,
    expiresAt: time.nullable(),
  })
  .meta({ id: 'WaitingTransaction' });

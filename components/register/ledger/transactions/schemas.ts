import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { TRANSACTION_TYPES } from '#core/ledger/transaction.ts';
import { pageSchema } from '#kit/http/http.ts';

const text = z.string();
const payload = text.describe('Base64 of the exact hashed bytes.');

/** The members that every transaction has, sealed or not. */
const identity = {
  transactionId: text,
  txId: text.describe('The same as transactionId.'),
  registerId: text,
  did: text,
};

/** Members of the record of a transaction, as answers repeat them. */
const sharedFields = {
  senderAddress: text,
  recipients: z.array(text).describe('Wallet addresses.'),
  createdAt: text.describe('ISO 8601, as it is signed.'),
  expiresAt: text.optional().describe('ISO 8601, as it is signed.'),
  blueprintId: text.optional(),
  actionId: text.optional(),
  payloadHash: text.describe('SHA-256 of the payload, 64 lower-case hex digits.'),
  payloadSize: z.int().describe('Bytes of the payload.'),
  metadata: z.record(z.string(), z.string()),
  signatures: z.array(
    z.object({
      publicKey: text.describe('Base64.'),
      signatureValue: text.describe('Base64.'),
      algorithm: z.enum(ALGORITHMS),
    }),
  ),
  bound: z.boolean().describe('Whether the id is derived from the content.'),
};

/** The members that the record of a transaction gives. */
const recordFields = {
  ...sharedFields,
  transactionType: z.enum(TRANSACTION_TYPES),
  timestamp: text.describe('ISO 8601, UTC.'),
  previousTransactionId: text.nullable(),
};

/** The record of a transaction, whose exact bytes are hashed. */
export const sealedRecordSchema = z
  .object({
    ...sharedFields,
    txId: text,
    registerId: text,
    type: z.enum(TRANSACTION_TYPES),
    previousTransactionId: text.optional(),
  })
  .meta({ id: 'SealedRecord' });

/** What the submission of a transaction answers until it is sealed. */
export const acceptedSchema = z
  .object({
    transactionId: text,
    txId: text.describe('The same as transactionId.'),
    status: z.literal('pending'),
    timestamp: text.describe('ISO 8601, UTC.'),
  })
  .meta({ id: 'SubmittedTransaction' });

/** A sealed transaction in a list: everything but its payload. */
export const transactionItemSchema = z
  .object({
    ...identity,
    ...recordFields,
    payloadHashForm: text.describe('Form of the hashed bytes: jcs or compact.'),
    docketId: text.describe('The docket number as text.'),
    docketNumber: z.int(),
    position: z.int().describe('Position in the docket, from 0.'),
    status: z.literal('confirmed'),
  })
  .meta({ id: 'TransactionItem' });

/** A sealed transaction. */
export const transactionSchema = transactionItemSchema.extend({ payload }).meta({ id: 'Transaction' });

/** A transaction that is not sealed; the members of its record while a validator holds it. */
export const unsealedTransactionSchema = z
  .object({
    ...identity,
    ...z.object(recordFields).partial().shape,
    docketId: text.nullable().describe('Null.'),
    docketNumber: z.int().nullable().describe('Null.'),
    status: z.enum(['pending', 'rejected', 'expired']),
    rejection: z
      .object({ code: text, message: text, at: text.describe('ISO 8601, UTC.') })
      .optional()
      .describe('Why the validators rejected it.'),
  })
  .meta({ id: 'UnsealedTransaction' });

export const transactionPageSchema = pageSchema(
  z.union([transactionItemSchema, unsealedTransactionSchema]),
).extend({
  totalCountIsLowerBound: z.boolean().optional().describe('More transactions may match.'),
  next: text.optional().describe('Cursor of the next page of a filtered list, for "before".'),
});

import { z } from 'zod';
import { pageSchema } from '#kit/http/http.ts';
import { transactionItemSchema } from '../../ledger/transactions/schemas.ts';

const text = z.string();
const instant = text.describe('ISO 8601, UTC.');

/** A transaction in a list over several registers. */
const foundTransactionSchema = z
  .object({ transaction: transactionItemSchema, registerId: text, registerName: text })
  .meta({ id: 'FoundTransaction' });

/** A page of transactions: of one register the items alone, of several each with its register. */
export const transactionsPageSchema = pageSchema(
  z.union([transactionItemSchema, foundTransactionSchema]),
).extend({
  totalCountIsLowerBound: z.boolean().optional(),
  next: text.optional().describe('Cursor of the next page.'),
});

export const statisticsSchema = z
  .object({
    totalTransactions: z.int(),
    uniqueWallets: z.int(),
    uniqueSenders: z.int(),
    uniqueRecipients: z.int(),
    totalPayloads: z.int(),
    earliestTransaction: instant.nullable(),
    latestTransaction: instant.nullable(),
    uniqueCountsAreLowerBounds: z.boolean().optional(),
  })
  .meta({ id: 'TransactionStatistics' });

/** A transaction as a node: its links without its content (specification document 2, section 2). */
export const graphNodeSchema = z
  .object({
    txId: text,
    prevTxId: text.nullable(),
    senderWallet: text,
    timeStamp: instant,
    docketNumber: z.int().nullable().describe('Null while it is pending.'),
    blueprintId: text.nullable(),
    instanceId: text.nullable(),
    transactionType: text,
  })
  .meta({ id: 'TransactionNode' });

export const graphSchema = z.object({
  nodes: z.array(graphNodeSchema),
  totalCount: z.int().describe('Sealed transactions.'),
  hasMore: z.boolean(),
});

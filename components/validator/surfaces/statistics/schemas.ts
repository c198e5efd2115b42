import { z } from 'zod';

const text = z.string();
const count = z.int().min(0);
const average = z.number().min(0).describe('milliseconds');
const unreachable = z.array(text).describe('validators that did not answer');

export const docketMetricsSchema = z.object({
  totalDocketsBuilt: count,
  totalDocketsValidated: count,
  averageBuildTime: average,
  averageValidationTime: average,
  averageTransactionsPerDocket: z.number().min(0),
  consensusSuccessRate: z.number().describe('rounds that ended in a docket, 0 to 1'),
  last24Hours: z.object({
    docketsBuilt: count,
    docketsValidated: count,
    docketsSealed: count,
    transactions: count,
  }),
  unreachable,
});

export const transactionMetricsSchema = z.object({
  totalReceived: count,
  totalValidated: count,
  totalRejected: count,
  totalConfirmed: count,
  averageValidationTime: average.describe('milliseconds from arrival to answer'),
  errorsByCode: z.record(text, count),
  last24Hours: z.object({ received: count, validated: count, rejected: count, confirmed: count }),
  unreachable,
});

export const mempoolMetricsSchema = z.object({
  registers: z.array(
    z.object({
      registerId: text,
      pending: count,
      verified: count,
      highPriority: count.describe('control transactions: they go first'),
      normalPriority: count,
      lowPriority: count,
      maxSize: count,
      fillPercentage: count.max(100),
      bytes: count,
      oldestTransaction: text.nullable().describe('when it came'),
      totalEvictions: count,
      totalExpired: count,
    }),
  ),
  unreachable,
});

import { z } from 'zod';
import { type App, callerOf } from '#kit/http/http.ts';
import { type CollectedReport, type CollectReportsDeps, collectReports } from '../reports/collect-reports.ts';
import { type Visibility, visibleTo } from '../reports/visibility.ts';
import { presentDockets, presentMempool, presentTransactions, type StatisticsContext } from './present.ts';

type StatisticsDeps = CollectReportsDeps & Visibility;

const text = z.string();
const count = z.int().min(0);
const average = z.number().min(0).describe('milliseconds');
const unreachable = z.array(text).describe('validators that did not answer');
const docketsSchema = z.object({
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
const transactionsSchema = z.object({
  totalReceived: count,
  totalValidated: count,
  totalRejected: count,
  totalConfirmed: count,
  averageValidationTime: average.describe('milliseconds from arrival to answer'),
  errorsByCode: z.record(text, count),
  last24Hours: z.object({ received: count, validated: count, rejected: count, confirmed: count }),
  unreachable,
});
const mempoolSchema = z.object({
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

type Presenter = (collected: readonly CollectedReport[], audience: StatisticsContext) => object;

/**
 * `GET /api/metrics/{dockets,transactions,mempool}`: counters of the validators since their starts, for the registers that
 * the caller may see.
 */
export function mountStatistics(app: App, deps: StatisticsDeps): void {
  mount(app, deps, {
    path: '/api/metrics/dockets',
    operationId: 'getDocketMetrics',
    summary: 'Dockets that were built and validated, over all validators',
    schema: docketsSchema,
    present: presentDockets,
  });
  mount(app, deps, {
    path: '/api/metrics/transactions',
    operationId: 'getTransactionMetrics',
    summary: 'Submissions that were taken and refused, over all validators',
    schema: transactionsSchema,
    present: presentTransactions,
  });
  mount(app, deps, {
    path: '/api/metrics/mempool',
    operationId: 'getMempoolMetrics',
    summary: 'Waiting transactions, by register',
    schema: mempoolSchema,
    present: presentMempool,
  });
}

function mount(
  app: App,
  deps: StatisticsDeps,
  route: {
    readonly path: string;
    readonly operationId: string;
    readonly summary: string;
    readonly schema: z.ZodType;
    readonly present: Presenter;
  },
): void {
  const { path, operationId, summary, schema, present } = route;
  app.get(
    path,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: { operationId, summary, tags: ['Metrics'], response: { 200: schema } },
    },
    async (request) => {
      const collected = await collectReports(deps, '');
      const seen = await visibleTo(deps, callerOf(request), collected);
      return present(collected, { self: deps.validatorId, isVisible: (registerId) => seen.has(registerId) });
    },
  );
}

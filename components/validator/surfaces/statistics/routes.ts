import type { Caller } from '#core/identity/claims.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { ofCalls } from '../../errors.ts';
import { type CollectedReport, type CollectReportsDeps, collectReports } from '../reports/collect-reports.ts';
import { type VisibilityOfMany, visibleTo } from '../reports/visibility.ts';
import { presentDockets, presentMempool, presentTransactions, type StatisticsContext } from './present.ts';
import { docketMetricsSchema, mempoolMetricsSchema, transactionMetricsSchema } from './schemas.ts';

type StatisticsDeps = CollectReportsDeps & VisibilityOfMany;

const metrics = {
  method: 'GET',
  tag: 'Metrics',
  policy: 'RequireAuthenticated',
  rateLimit: 'Api',
  refusals: ofCalls,
} as const;

const description = 'Counters since the starts of the validators.';

/**
 * `GET /api/metrics/{dockets,transactions,mempool}`: counters of the validators since their starts, for the registers that
 * the caller may see.
 */
export function mountStatistics(app: App, deps: StatisticsDeps): void {
  addRoute(app, {
    ...metrics,
    path: '/api/metrics/dockets',
    operationId: 'getDocketMetrics',
    summary: 'Dockets that were built and validated, over all validators',
    answers: { 200: json(description, docketMetricsSchema) },
    handle: async ({ caller }) => presentDockets(...(await visibleReports(deps, caller))),
  });
  addRoute(app, {
    ...metrics,
    path: '/api/metrics/transactions',
    operationId: 'getTransactionMetrics',
    summary: 'Submissions that were taken and refused, over all validators',
    answers: { 200: json(description, transactionMetricsSchema) },
    handle: async ({ caller }) => presentTransactions(...(await visibleReports(deps, caller))),
  });
  addRoute(app, {
    ...metrics,
    path: '/api/metrics/mempool',
    operationId: 'getMempoolMetrics',
    summary: 'Waiting transactions, by register',
    answers: { 200: json('The memory pools, by register.', mempoolMetricsSchema) },
    handle: async ({ caller }) => presentMempool(...(await visibleReports(deps, caller))),
  });
}

async function visibleReports(
  deps: StatisticsDeps,
  caller: Caller,
): Promise<[readonly CollectedReport[], StatisticsContext]> {
  const collected = await collectReports(deps, '');
  const visible = await visibleTo(deps, caller, collected);
  return [collected, { self: deps.validatorId, isVisible: (registerId) => visible.has(registerId) }];
}

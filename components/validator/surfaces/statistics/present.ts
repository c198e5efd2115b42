import type { z } from 'zod';
import { addWork, type WorkCounts } from '../../chain/sealing/work-counter.ts';
import type { CollectedReport } from '../reports/collect-reports.ts';
import type { RegisterReport } from '../reports/report.ts';
import { type SetView, viewSets } from '../reports/sets.ts';
import type { docketMetricsSchema, mempoolMetricsSchema, transactionMetricsSchema } from './schemas.ts';

/** The visible registers and the answering validator. */
export interface StatisticsContext {
  readonly self: string;
  isVisible(registerId: string): boolean;
}

/** The period of the counters. */
type Period = 'total' | 'lastDay';

/** `GET /api/metrics/dockets` over the registers that the caller may see (specification document 2, section 4). */
export function presentDockets(
  collected: readonly CollectedReport[],
  audience: StatisticsContext,
): z.output<typeof docketMetricsSchema> {
  const sets = visible(collected, audience);
  const total = sumOf(sets, 'total');
  const lastDay = sumOf(sets, 'lastDay');
  const rounds = sets.map((set) => roundCounts(set));
  const ended = rounds.reduce((sum, { rounds: count }) => sum + count, 0);
  const decided = rounds.reduce((sum, counts) => sum + counts.decided, 0);
  return {
    totalDocketsBuilt: total.built,
    totalDocketsValidated: total.judged,
    averageBuildTime: milliseconds(total.buildingMicros, total.built),
    averageValidationTime: milliseconds(total.judgingMicros, total.judged),
    averageTransactionsPerDocket: ratio(total.confirmed, total.stored),
    consensusSuccessRate: ended === 0 ? 1 : ratio(decided, ended),
    last24Hours: {
      docketsBuilt: lastDay.built,
      docketsValidated: lastDay.judged,
      docketsSealed: lastDay.stored,
      transactions: lastDay.confirmed,
    },
    unreachable: unreachable(collected),
  };
}

/** `GET /api/metrics/transactions` over the registers that the caller may see. */
export function presentTransactions(
  collected: readonly CollectedReport[],
  audience: StatisticsContext,
): z.output<typeof transactionMetricsSchema> {
  const sets = visible(collected, audience);
  const total = sumOf(sets, 'total');
  const lastDay = sumOf(sets, 'lastDay');
  return {
    totalReceived: total.received,
    totalValidated: total.validated,
    totalRejected: total.rejected,
    totalConfirmed: total.confirmed,
    averageValidationTime: milliseconds(total.validatingMicros, total.received),
    errorsByCode: codesOf(sets),
    last24Hours: {
      received: lastDay.received,
      validated: lastDay.validated,
      rejected: lastDay.rejected,
      confirmed: lastDay.confirmed,
    },
    unreachable: unreachable(collected),
  };
}

/** `GET /api/metrics/mempool`. The member with the most waiting transactions represents a register. */
export function presentMempool(
  collected: readonly CollectedReport[],
  audience: StatisticsContext,
): z.output<typeof mempoolMetricsSchema> {
  return {
    registers: visible(collected, audience).map(presentPool),
    unreachable: unreachable(collected),
  };
}

function presentPool(set: SetView) {
  const reports = reportsOf(set);
  const [first] = reports.toSorted((a, b) => b.memPoolSize - a.memPoolSize);
  const { control, action, bytes, maxSize, oldestAtMs } = first?.pool ?? set.mostAdvanced.pool;
  const pending = control + action;
  return {
    registerId: set.registerId,
    pending,
    // Only verified transactions enter the pool.
    verified: pending,
    // The control lane has priority; within a lane the order is that of arrival.
    highPriority: control,
    normalPriority: action,
    lowPriority: 0,
    maxSize,
    fillPercentage: maxSize === 0 ? 0 : Math.min(100, Math.floor((action * 100) / maxSize)),
    bytes,
    oldestTransaction: oldestAtMs === 0 ? null : new Date(oldestAtMs).toISOString(),
    // An accepted transaction is never evicted for another one.
    totalEvictions: 0,
    totalExpired: Math.max(0, ...reports.map(({ work }) => work.total.expired)),
  };
}

function visible(
  collected: readonly CollectedReport[],
  { self, isVisible }: StatisticsContext,
): readonly SetView[] {
  return viewSets(collected, self).filter(({ registerId }) => isVisible(registerId));
}

function reportsOf({ members }: SetView): readonly RegisterReport[] {
  return members.flatMap(({ report }) => report ?? []);
}

/** Sums counters of each member's own work. For events that all members see, the member with the most represents them. */
function sumOf(sets: readonly SetView[], of: Period): WorkCounts {
  return addWork(
    sets.map((set) => {
      const all = reportsOf(set).map(({ work }) => work[of]);
      const [seen] = all.toSorted((a, b) => b.stored - a.stored);
      const { confirmed, stored } = seen ?? { confirmed: 0, stored: 0 };
      return { ...addWork(all), confirmed, stored };
    }),
  );
}

function roundCounts(set: SetView): { readonly rounds: number; readonly decided: number } {
  const [most] = reportsOf(set)
    .map(({ counts }) => counts)
    .toSorted((a, b) => b.rounds - a.rounds);
  return most ?? { rounds: 0, decided: 0 };
}

function codesOf(sets: readonly SetView[]): Record<string, number> {
  const codes = new Map<string, number>();
  const entries = sets.flatMap(reportsOf).flatMap(({ work }) => Object.entries(work.errorsByCode));
  for (const [code, count] of entries) codes.set(code, (codes.get(code) ?? 0) + count);
  return Object.fromEntries([...codes].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function unreachable(collected: readonly CollectedReport[]): string[] {
  return collected.flatMap(({ validatorId, report }) => (report === undefined ? validatorId : []));
}

function milliseconds(micros: number, by: number): number {
  return by === 0 ? 0 : Math.round(micros / by) / 1_000;
}

function ratio(value: number, by: number): number {
  return by === 0 ? 0 : Math.round((value / by) * 1000) / 1000;
}

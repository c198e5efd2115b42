import type {
  PoolView,
  WorkCounts as WireCounts,
  WorkTally,
} from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { type WorkCounts, type WorkReport, workNames, zeroWork } from '../../chain/sealing/work-counter.ts';
import type { PoolReport } from './report.ts';

/** Counters as a protobuf message. */
export function wireWork({ total, lastDay, errorsByCode }: WorkReport) {
  const codes = Object.entries(errorsByCode).map(([code, count]) => [code, BigInt(count)] as const);
  return {
    total: wireCounts(total),
    lastDay: wireCounts(lastDay),
    errorsByCode: Object.fromEntries(codes),
  };
}

/** Parses another validator's counters; zeros when it sends none. */
export function workOf(wire: WorkTally | undefined): WorkReport {
  const codes = Object.entries(wire?.errorsByCode ?? {}).map(([code, count]) => [code, Number(count)]);
  return {
    total: countsOf(wire?.total),
    lastDay: countsOf(wire?.lastDay),
    errorsByCode: Object.fromEntries(codes),
  };
}

function wireCounts(counts: Readonly<WorkCounts>): Record<keyof WorkCounts, bigint> {
  const wire: Partial<Record<keyof WorkCounts, bigint>> = {};
  for (const name of workNames) wire[name] = BigInt(Math.round(counts[name]));
  return wire as Record<keyof WorkCounts, bigint>;
}

function countsOf(wire: WireCounts | undefined): WorkCounts {
  const counts = zeroWork();
  if (wire === undefined) return counts;
  for (const name of workNames) counts[name] = Number(wire[name]);
  return counts;
}

/** Pool statistics as a protobuf message. */
export function wirePool({ oldestAtMs, bytes, ...pool }: PoolReport) {
  return { ...pool, bytes: BigInt(bytes), oldestAtMs: BigInt(Math.round(oldestAtMs)) };
}

/** Parses another validator's pool statistics; zeros when it sends none. */
export function poolOf(wire: PoolView | undefined): PoolReport {
  return {
    control: wire?.control ?? 0,
    action: wire?.action ?? 0,
    bytes: Number(wire?.bytes ?? 0n),
    maxSize: wire?.maxSize ?? 0,
    oldestAtMs: Number(wire?.oldestAtMs ?? 0n),
  };
}

import { Histogram } from 'prom-client';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';

/** `..._rpc_{side}_duration_seconds`, one per component however many clients and servers it has. */
export function callDuration(telemetry: Telemetry, side: 'server' | 'client'): Histogram {
  const name = `rpc_${side}_duration_seconds`;
  for (const metric of telemetry.registry.getMetricsAsArray()) {
    if (metric instanceof Histogram && metric.name.endsWith(`_${name}`)) return metric;
  }
  return telemetry.histogram(name, `Duration of gRPC calls at the ${side}, seconds`, {
    labels: ['method', 'outcome'],
  });
}

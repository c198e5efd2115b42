import type { Runtime } from '#kit/lifecycle/lifecycle.ts';

/** One request for metrics and logs: never its query, headers or body. */
interface Observed {
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  /** The service, `gateway` for its own pages, `none` for requests refused before routing. */
  readonly peer: string;
  readonly status: number;
  readonly clientAddress: string;
  readonly traceId: string;
  readonly startedAt: number;
  /** A stream or poll of a hub: its duration does not measure the service. */
  readonly isHeld: boolean;
}

export type Observe = (observed: Observed) => void;

/** Counts and times every request, except held ones, by service and status class; logs refusals and failures at info, the rest at debug. */
export function createObserve(runtime: Runtime): Observe {
  const { log, telemetry } = runtime;
  const seconds = telemetry.histogram('request_seconds', 'Duration of requests through the gateway.', {
    labels: ['peer', 'status'],
  });
  return (observed) => {
    const durationMs = performance.now() - observed.startedAt;
    const labels = { peer: observed.peer, status: `${Math.trunc(observed.status / 100)}xx` };
    if (!observed.isHeld) seconds.observe(labels, durationMs / 1000);
    const level = observed.status >= 400 ? 'info' : 'debug';
    if (!log.isLevelEnabled(level)) return;
    const { method, path, peer, status, clientAddress, traceId } = observed;
    const entry = { method, path, peer, status, clientAddress, traceId };
    log[level]({ ...entry, durationMs: Math.round(durationMs * 100) / 100 }, 'request');
  };
}

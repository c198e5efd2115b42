import { setTimeout as pause } from 'node:timers/promises';
import { startPollLoop } from '#kit/clock/poll-loop.ts';

/** An endpoint, as a probe uses it. */
interface ProbedEndpoint {
  isBusy(): boolean;
  askHealth(signal: AbortSignal): Promise<number>;
  giveUp(): void;
}

/** A service, as the probes use it. */
interface ProbedService<T extends ProbedEndpoint> {
  readonly targets: readonly T[];
  current(): T;
  leave(target: T): void;
}

interface ProbeOptions {
  readonly everyMs?: number;
  readonly timeoutMs?: number;
}

/** Consecutive failed probes after which an endpoint is considered gone, and its pending calls are aborted. */
const mostMisses = 3;

/**
 * Probes services with several endpoints. The active endpoint is replaced by the next one when it accepts connections
 * without answering, or reports that it cannot work, before every request has to wait for it. An endpoint with pending
 * requests is probed as well, and they are aborted when it no longer answers: a machine that is cut off closes no
 * connection. Returns the function that stops the probes.
 */
export function startProbes<T extends ProbedEndpoint>(
  upstreams: readonly ProbedService<T>[],
  options: ProbeOptions = {},
): () => void {
  const { everyMs = 1_000, timeoutMs = 2_000 } = options;
  const watched = upstreams.filter(({ targets }) => targets.length > 1);
  if (watched.length === 0) return () => undefined;
  const asked = new Set<T>();
  let stopped = false;
  const probe = async (upstream: ProbedService<T>, target: T) => {
    for (let missed = 0; missed < mostMisses; missed++) {
      const endsAt = performance.now() + timeoutMs;
      const status = await target.askHealth(AbortSignal.timeout(timeoutMs)).catch(() => undefined);
      if (status === undefined || status >= 500) upstream.leave(target);
      if (status !== undefined || !target.isBusy() || stopped) return;
      // a stopping endpoint refuses connections at once, and completes pending requests
      await pause(Math.max(0, endsAt - performance.now()), undefined, { ref: false });
    }
    if (target.isBusy() && !stopped) target.giveUp();
  };
  const look = (upstream: ProbedService<T>, target: T) => {
    if (asked.has(target) || (target !== upstream.current() && !target.isBusy())) return;
    asked.add(target);
    void probe(upstream, target).finally(() => asked.delete(target));
  };
  // A pass does not wait for its probes, so that a silent endpoint does not delay those of other services.
  const loop = startPollLoop(
    async () => {
      for (const upstream of watched) for (const target of upstream.targets) look(upstream, target);
      return everyMs;
    },
    { firstMs: everyMs },
  );
  return () => {
    stopped = true;
    void loop.stop();
  };
}

import { setTimeout as pause } from 'node:timers/promises';

/** An endpoint as a probe sees it. */
interface Probed {
  isBusy(): boolean;
  askHealth(signal: AbortSignal): Promise<number>;
  giveUp(): void;
}

/** A service as the probes see it. */
interface Watched<T extends Probed> {
  readonly targets: readonly T[];
  current(): T;
  leave(target: T): void;
}

export interface ProbeOptions {
  readonly everyMs?: number;
  readonly timeoutMs?: number;
}

/** An endpoint that has not answered so many probes in a row is gone: what waits for its answers waits in vain. */
const mostMisses = 3;

/**
 * Looks after services with several endpoints. The one in use is left for the next when it takes connections and answers
 * nothing, or says that it cannot work, before every request waits for it. Where requests are under way it is asked as
 * well, and they are given up when it does not answer any more: a machine that is cut off closes no connection.
 * Gives the way to stop.
 */
export function startProbes<T extends Probed>(
  upstreams: readonly Watched<T>[],
  options: ProbeOptions = {},
): () => void {
  const { everyMs = 1_000, timeoutMs = 2_000 } = options;
  const watched = upstreams.filter(({ targets }) => targets.length > 1);
  if (watched.length === 0) return () => undefined;
  const asked = new Set<T>();
  let stopped = false;
  const probe = async (upstream: Watched<T>, target: T) => {
    for (let missed = 0; missed < mostMisses; missed++) {
      const endsAt = performance.now() + timeoutMs;
      const status = await target.askHealth(AbortSignal.timeout(timeoutMs)).catch(() => undefined);
      if (status === undefined || status >= 500) upstream.leave(target);
      if (status !== undefined || !target.isBusy() || stopped) return;
      // one that stops refuses connections at once, and ends what it has begun
      await pause(Math.max(0, endsAt - performance.now()), undefined, { ref: false });
    }
    if (target.isBusy() && !stopped) target.giveUp();
  };
  const look = (upstream: Watched<T>, target: T) => {
    if (asked.has(target) || (target !== upstream.current() && !target.isBusy())) return;
    asked.add(target);
    void probe(upstream, target).finally(() => asked.delete(target));
  };
  const timer = setInterval(() => {
    for (const upstream of watched) for (const target of upstream.targets) look(upstream, target);
  }, everyMs);
  return () => {
    stopped = true;
    clearInterval(timer);
  };
}

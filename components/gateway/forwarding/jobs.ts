/** What of a connection pool a probe needs. */
interface Asked {
  request(options: {
    readonly path: string;
    readonly method: 'GET';
    readonly signal: AbortSignal;
  }): Promise<{ readonly statusCode: number; readonly body: { dump(): Promise<void> } }>;
}

/** A service as a probe sees it. */
interface Probed<P extends Asked> {
  readonly size: number;
  pool(): P;
  moveOn(from: P): void;
}

export interface ProbeOptions {
  readonly everyMs?: number;
  readonly timeoutMs?: number;
}

/**
 * Looks after services with several endpoints: an endpoint that takes connections and answers nothing, or says that it
 * cannot work, is left for the next one, before every request waits for it. Gives the way to stop.
 */
export function startProbes<P extends Asked>(
  upstreams: readonly Probed<P>[],
  options: ProbeOptions = {},
): () => void {
  const { everyMs = 2_000, timeoutMs = 2_000 } = options;
  const watched = upstreams.filter((upstream) => upstream.size > 1);
  if (watched.length === 0) return () => undefined;
  const busy = new Set<Probed<P>>();
  const timer = setInterval(() => {
    for (const upstream of watched) {
      if (busy.has(upstream)) continue;
      busy.add(upstream);
      void probe(upstream, timeoutMs).finally(() => busy.delete(upstream));
    }
  }, everyMs);
  return () => clearInterval(timer);
}

async function probe<P extends Asked>(upstream: Probed<P>, timeoutMs: number): Promise<void> {
  const pool = upstream.pool();
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const { statusCode, body } = await pool.request({ path: '/health', method: 'GET', signal });
    await body.dump();
    if (statusCode >= 500) upstream.moveOn(pool);
  } catch {
    upstream.moveOn(pool);
  }
}

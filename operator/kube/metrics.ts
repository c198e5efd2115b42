import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** A gauge whose values are read from registered sources at every scrape. */
interface ScrapedGauge {
  /** @returns a function that removes the source and its time series */
  add(labels: Readonly<Record<string, string>>, read: () => number): () => void;
}

function createScrapedGauge(
  registry: Registry,
  name: string,
  help: string,
  labelNames: string[],
): ScrapedGauge {
  const sources = new Set<{
    readonly labels: Readonly<Record<string, string>>;
    readonly read: () => number;
  }>();
  new Gauge({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const { labels, read } of sources) this.set({ ...labels }, read());
    },
  });
  return {
    add: (labels, read) => {
      const source = { labels, read };
      sources.add(source);
      return () => void sources.delete(source);
    },
  };
}

/**
 * The metrics of one process, under the names of controller-runtime and client-go, so that their dashboards and alerts
 * work. Call it once per registry.
 */
export function createKubeMetrics(registry: Registry) {
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = (name: string, help: string, labelNames: string[]) =>
    new Histogram({ name, help, labelNames, buckets: seconds, registers });
  const scrapedGauge = (name: string, help: string, labelNames: string[]) =>
    createScrapedGauge(registry, name, help, labelNames);
  const named = ['controller'];
  const queued = ['name', 'controller'];
  const watched = ['resource', 'namespace'];
  return {
    client: {
      requests: counter('rest_client_requests_total', 'Answers, by HTTP status', ['code', 'method', 'host']),
      duration: histogram('rest_client_request_duration_seconds', 'Time to the answer', ['verb', 'host']),
      held: histogram('rest_client_rate_limiter_duration_seconds', 'Wait for the own limit', [
        'verb',
        'host',
      ]),
      retries: counter('rest_client_request_retries_total', 'Tries after the first', [
        'code',
        'verb',
        'host',
      ]),
    },
    informer: {
      ages: scrapedGauge('informer_last_sync_age_seconds', 'Time since the cluster last spoke', watched),
      objects: scrapedGauge('informer_objects', 'Objects in the cache', watched),
      lists: counter('informer_lists_total', 'Complete lists', ['resource']),
      failures: counter('informer_stream_failures_total', 'Watches that broke, by cause', [
        'resource',
        'cause',
      ]),
    },
    queue: {
      depth: scrapedGauge('workqueue_depth', 'Keys that wait for a worker', queued),
      adds: counter('workqueue_adds_total', 'Keys taken up', queued),
      retries: counter('workqueue_retries_total', 'Keys taken up again after a failure', queued),
      waited: histogram('workqueue_queue_duration_seconds', 'Time a key waited', queued),
      worked: histogram('workqueue_work_duration_seconds', 'Time a key was worked on', queued),
      unfinished: scrapedGauge('workqueue_unfinished_work_seconds', 'Time of all work under way', queued),
      longest: scrapedGauge('workqueue_longest_running_processor_seconds', 'Oldest work under way', queued),
    },
    controller: {
      total: counter('controller_runtime_reconcile_total', 'Reconciles', ['controller', 'result']),
      errors: counter('controller_runtime_reconcile_errors_total', 'That failed', named),
      terminal: counter('controller_runtime_terminal_reconcile_errors_total', 'That are not retried', named),
      panics: counter('controller_runtime_reconcile_panics_total', 'That hit an error of the program', named),
      timeouts: counter('controller_runtime_reconcile_timeouts_total', 'That ran out of time', named),
      duration: histogram('controller_runtime_reconcile_time_seconds', 'Time of a reconcile', named),
      active: scrapedGauge('controller_runtime_active_workers', 'Workers at work', named),
      most: scrapedGauge('controller_runtime_max_concurrent_reconciles', 'Workers', named),
    },
    leader: scrapedGauge('leader_election_master_status', '1 where this process holds the lease', ['name']),
    events: counter('kube_events_total', 'Events, by what became of them', ['outcome']),
  } as const;
}

export type KubeMetrics = ReturnType<typeof createKubeMetrics>;

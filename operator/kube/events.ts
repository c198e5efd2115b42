import type { Timing } from '#kit/clock/timing.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Api } from './api.ts';
import { isApiError } from './errors.ts';
import { namespaced } from './kinds.ts';
import type { KubeMetrics } from './metrics.ts';
import { microTime } from './micro-time.ts';
import { type Bucket, createBucket } from './rate-limit.ts';
import type { KubeObject } from './resource.ts';

export const kubeEvents = namespaced('events.k8s.io', 'v1', 'Event', 'events');

interface EventRecorderOptions {
  /** A fenced port: only the leader writes events. */
  readonly api: Api;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  readonly log: Logger;
  /** Reporting controller, such as `example.com/operator`; `instance` is its process. */
  readonly controller: string;
  readonly instance: string;
}

/** Content of an event about an object. */
export interface EventDetails {
  readonly type: 'Normal' | 'Warning';
  /** Reason, as in a condition. */
  readonly reason: string;
  /** Action that was taken or attempted, in one word: `Roll`, `Seal`. */
  readonly action: string;
  readonly note: string;
}

/** An event that exists in the cluster. */
interface Series {
  readonly name: string;
  readonly namespace: string;
  count: number;
  writtenAtMs: number;
  seenAtMs: number;
}

interface PendingEvent {
  readonly object: KubeObject;
  readonly details: EventDetails;
}

const maxPending = 1_000;
const maxSeries = 4_096;
/** The API server deletes events after one hour; a continuing series is written again before that. */
const refreshMs = 30 * 60_000;
const seriesEndMs = 60 * 60_000;
const callTimeoutMs = 10_000;

/**
 * Writes events without blocking the caller. Repeated events form a series with a count. The series is written at the 2nd,
 * 4th, 8th ... occurrence and every 30 minutes, so that a loop that fails all day costs a few dozen calls.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #series = new Map<string, Series>();
  readonly #buckets = new Map<string, Bucket>();
  readonly #pending: PendingEvent[] = [];
  #sending: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** Queues an event about an object. */
  record(object: KubeObject, details: EventDetails): void {
    if (this.#isStopped || this.#pending.length >= maxPending) {
      this.#count('dropped');
      return;
    }
    this.#pending.push({ object, details });
    this.#startSending();
  }

  /** Resolves when every queued event was sent or dropped. */
  async flush(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
  }

  /** Accepts no new events and sends the queued ones. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.flush();
  }

  #startSending(): void {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
      if (this.#pending.length > 0) this.#startSending();
    });
  }

  async #send(): Promise<void> {
    for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) {
      try {
        this.#count(await this.#report(next));
      } catch (error) {
        this.#count('failed');
        this.#options.log.debug({ err: error }, 'Event could not be written');
      }
    }
  }

  async #report({ object, details }: PendingEvent): Promise<string> {
    const uid = object.metadata.uid ?? '';
    const key = JSON.stringify([uid, details.type, details.reason, details.action, details.note]);
    const now = this.#options.timing.monotonicMs();
    const known = this.#series.get(key);
    if (known !== undefined && now - known.seenAtMs < seriesEndMs) {
      known.count += 1;
      known.seenAtMs = now;
      const isDue = (known.count & (known.count - 1)) === 0 || now - known.writtenAtMs >= refreshMs;
      if (!isDue) return 'counted';
      if (!this.#bucketOf(uid).take()) return 'limited';
      if (await this.#continue(known)) return 'repeated';
    } else if (!this.#bucketOf(uid).take()) {
      return 'limited';
    }
    this.#series.delete(key);
    this.#series.set(key, await this.#create(object, details));
    limitSize(this.#series);
    return 'created';
  }

  async #create(object: KubeObject, details: EventDetails): Promise<Series> {
    const { api, timing, controller, instance } = this.#options;
    const { name, namespace, uid, resourceVersion } = object.metadata;
    const at = timing.nowMicros().toString(16);
    const own = { name: `${name.slice(0, 253 - at.length - 1)}.${at}`, namespace: namespace ?? 'default' };
    const { apiVersion, kind } = object;
    const body = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: own,
      eventTime: microTime(timing),
      reportingController: controller,
      reportingInstance: instance.slice(0, 128),
      regarding: { apiVersion, kind, name, namespace, uid, resourceVersion },
      type: details.type,
      reason: details.reason,
      action: details.action,
      note: clip(details.note),
    };
    const where = { resource: kubeEvents, namespace: own.namespace, timeoutMs: callTimeoutMs };
    await api.call({ ...where, verb: 'create', body });
    const now = timing.monotonicMs();
    return { ...own, count: 1, writtenAtMs: now, seenAtMs: now };
  }

  /** Continues a series; false when the cluster has deleted the event. */
  async #continue(series: Series): Promise<boolean> {
    const { api, timing } = this.#options;
    const { namespace, name, count } = series;
    try {
      await api.call({
        verb: 'patch',
        resource: kubeEvents,
        namespace,
        name,
        contentType: 'application/merge-patch+json',
        body: { series: { count, lastObservedTime: microTime(timing) } },
        timeoutMs: callTimeoutMs,
      });
    } catch (error) {
      if (isApiError(error, 'NotFound')) return false;
      throw error;
    }
    series.writtenAtMs = timing.monotonicMs();
    return true;
  }

  /** Per object a burst of 25, then one event every five minutes, as in client-go. */
  #bucketOf(uid: string): Bucket {
    const rate = { perSecond: 1 / 300, burst: 25 };
    const bucket = this.#buckets.get(uid) ?? createBucket(rate, this.#options.timing);
    this.#buckets.delete(uid);
    this.#buckets.set(uid, bucket);
    limitSize(this.#buckets);
    return bucket;
  }

  #count(outcome: string): void {
    this.#options.metrics.events.inc({ outcome });
  }
}

/** Deletes the oldest entry of a map that is too large. */
function limitSize(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (map.size > maxSeries && oldest !== undefined) map.delete(oldest);
}

function clip(note: string): string {
  return note.length > 1024 ? `${note.slice(0, 1021)}...` : note;
}

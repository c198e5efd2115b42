import type { Logger } from '#kit/log/log.ts';
import type { Api } from './api.ts';
import { isApiError } from './errors.ts';
import { namespaced } from './kinds.ts';
import type { KubeMetrics } from './metrics.ts';
import { type Bucket, createBucket } from './rate-limit.ts';
import type { KubeObject } from './resource.ts';
import { microTime, type Timing } from './time.ts';

export const kubeEvents = namespaced('events.k8s.io', 'v1', 'Event', 'events');

export interface EventRecorderOptions {
  /** Behind the fence: who does not lead says nothing. */
  readonly api: Api;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  readonly log: Logger;
  /** `example.com/operator`: who reports, and which process of it. */
  readonly controller: string;
  readonly instance: string;
}

/** Something worth telling the people who look at an object. */
export interface Occurrence {
  readonly type: 'Normal' | 'Warning';
  /** One word, as in a condition. */
  readonly reason: string;
  /** What was done or tried, one word: `Roll`, `Seal`. */
  readonly action: string;
  readonly note: string;
}

/** An event that the cluster has. */
interface Series {
  readonly name: string;
  readonly namespace: string;
  count: number;
  writtenAtMs: number;
  seenAtMs: number;
}

interface Report {
  readonly object: KubeObject;
  readonly what: Occurrence;
}

const MAX_WAITING = 1_000;
const MAX_SERIES = 4_096;
/** The API server forgets an event after an hour; one that goes on is written again before. */
const REFRESH_MS = 30 * 60_000;
const SERIES_END_MS = 60 * 60_000;
const CALL_TIMEOUT_MS = 10_000;

/**
 * Writes events without ever making anybody wait. What repeats is one event with a count: it is written at the 2nd, 4th,
 * 8th ... time and every half hour, so that a loop that fails all day costs a few dozen calls.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #series = new Map<string, Series>();
  readonly #buckets = new Map<string, Bucket>();
  readonly #waiting: Report[] = [];
  #sending: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** Reports something about an object. */
  record(object: KubeObject, what: Occurrence): void {
    if (this.#isStopped || this.#waiting.length >= MAX_WAITING) {
      this.#count('dropped');
      return;
    }
    this.#waiting.push({ object, what });
    this.#pump();
  }

  /** Resolves when everything reported so far was sent or given up. */
  async flush(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
  }

  /** Takes nothing new and sends the rest. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.flush();
  }

  #pump(): void {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
      if (this.#waiting.length > 0) this.#pump();
    });
  }

  async #send(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        this.#count(await this.#report(next));
      } catch (error) {
        this.#count('failed');
        this.#options.log.debug({ err: error }, 'Event could not be written');
      }
    }
  }

  async #report({ object, what }: Report): Promise<string> {
    const uid = object.metadata.uid ?? '';
    const key = JSON.stringify([uid, what.type, what.reason, what.action, what.note]);
    const now = this.#options.timing.monotonicMs();
    const known = this.#series.get(key);
    if (known !== undefined && now - known.seenAtMs < SERIES_END_MS) {
      known.count += 1;
      known.seenAtMs = now;
      const isDue = (known.count & (known.count - 1)) === 0 || now - known.writtenAtMs >= REFRESH_MS;
      if (!isDue) return 'counted';
      if (!this.#bucketOf(uid).take()) return 'limited';
      if (await this.#continue(known)) return 'repeated';
    } else if (!this.#bucketOf(uid).take()) {
      return 'limited';
    }
    this.#series.delete(key);
    this.#series.set(key, await this.#create(object, what));
    limitSize(this.#series);
    return 'created';
  }

  async #create(object: KubeObject, what: Occurrence): Promise<Series> {
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
      type: what.type,
      reason: what.reason,
      action: what.action,
      note: clip(what.note),
    };
    const where = { resource: kubeEvents, namespace: own.namespace, timeoutMs: CALL_TIMEOUT_MS };
    await api.call({ ...where, verb: 'create', body });
    const now = timing.monotonicMs();
    return { ...own, count: 1, writtenAtMs: now, seenAtMs: now };
  }

  /** Whether the event could be continued; not when the cluster has forgotten it. */
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
        timeoutMs: CALL_TIMEOUT_MS,
      });
    } catch (error) {
      if (isApiError(error, 'NotFound')) return false;
      throw error;
    }
    series.writtenAtMs = timing.monotonicMs();
    return true;
  }

  /** 25 at once and one every five minutes for each object, as other controllers have it. */
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

/** The oldest entry goes. */
function limitSize(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (map.size > MAX_SERIES && oldest !== undefined) map.delete(oldest);
}

function clip(note: string): string {
  return note.length > 1024 ? `${note.slice(0, 1021)}...` : note;
}

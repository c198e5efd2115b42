import { isAppError } from '#core/errors/errors.ts';
import { sleep, type Timing } from '#kit/clock/timing.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Api } from './api.ts';
import { ApiError, isApiError, messageOf, statusReasonOf } from './errors.ts';
import { fetchList, type Selection } from './list.ts';
import type { KubeMetrics } from './metrics.ts';
import { type Backoff, createBackoff } from './rate-limit.ts';
import {
  apiVersionOf,
  isRecord,
  type KubeObject,
  parseObject,
  type Resource,
  resourceName,
  withoutManagedFields,
} from './resource.ts';
import type { Store } from './store.ts';
import { BrokenStream, createWatchdog, decodeEvents, type WatchEvent } from './watch.ts';

export interface ReflectorOptions extends Selection {
  readonly api: Api;
  readonly store: Store;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  readonly log: Logger;
  /** The kind may be absent from the cluster; it is then looked for every five minutes. */
  readonly isOptional?: boolean | undefined;
  /** Called when an optional kind becomes available or unavailable. */
  readonly onServed?: ((isServed: boolean) => void) | undefined;
}

/** Bookmarks arrive every minute; a longer silence means a half-open connection. */
const silenceMs = 90_000;
/** Abort reason of a stream that is replaced by a relist. */
const relistRequested = new Error('the cache is listed again');
const watchSeconds = 300;
/** A stream that stayed open this long resets the backoff. */
const healthyMs = 5_000;
/** Interval of attempts for an absent optional kind. */
const absentMs = 300_000;
/** After this many refused streams in a row the resource version itself is discarded. */
const maxRefusedStreams = 5;

/**
 * Keeps a store equal to the cluster by list and watch. After a fault the watch resumes from the last resource version,
 * with backoff. Only an expired resource version causes a new list. So no change is missed, and a fault costs at most one
 * list. An absent optional kind counts as synced and empty.
 */
export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #name: string;
  readonly #stopping = new AbortController();
  #firstList = Promise.withResolvers<void>();
  readonly #backoff: Backoff;
  readonly #gauges: (() => void)[];
  #running: Promise<void> | undefined;
  /** Resource version of the store; undefined when a list is needed. */
  #version: string | undefined;
  #wasListed = false;
  #isServed = false;
  /** Whether the cluster does not serve the kind. */
  #isAbsent = false;
  #relisting: PromiseWithResolvers<void> | undefined;
  /** Aborts a pause or a stream for a relist. */
  #interruption = new AbortController();
  #lastHeardAtMs: number;
  #openedAtMs: number | undefined;
  #refusedStreams = 0;
  #fault: unknown;
  #expirations = 0;

  constructor(options: ReflectorOptions) {
    const { timing, metrics, store, resource } = options;
    this.#options = options;
    this.#name = resourceName(resource);
    this.#backoff = createBackoff({ firstMs: 800, lastMs: 30_000 }, timing);
    this.#lastHeardAtMs = timing.monotonicMs();
    const labels = { resource: this.#name, namespace: options.namespace ?? '' };
    this.#gauges = [
      metrics.informer.ages.add(labels, () => this.ageMs() / 1000),
      metrics.informer.objects.add(labels, () => store.size),
    ];
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when the first list, or the list of a relist, is in the store. */
  get synced(): Promise<void> {
    return this.#firstList.promise;
  }

  get isSynced(): boolean {
    return this.#wasListed;
  }

  /**
   * Lists again; the reflector is not synced until then. A new leader needs it: a half-open watch connection may have
   * withheld changes until the watchdog notices.
   * @returns resolves after the attempt, whether or not it succeeded
   */
  relist(): Promise<void> {
    this.#relisting?.resolve();
    this.#relisting = Promise.withResolvers();
    if (this.#wasListed) this.#firstList = Promise.withResolvers();
    this.#wasListed = false;
    this.#version = undefined;
    this.#interruption.abort(relistRequested);
    return this.#relisting.promise;
  }

  /** Whether the cluster serves this kind, as of the last answer. */
  get isServed(): boolean {
    return this.#isServed;
  }

  /** The last error; undefined while the watch works. The message of a Forbidden names the missing verb. */
  get fault(): unknown {
    return this.#fault;
  }

  /** Whether a watch is open. */
  get isConnected(): boolean {
    return this.#openedAtMs !== undefined;
  }

  /** Milliseconds since the last data from the cluster; more than twice the 90 s of silence means a stale store. */
  ageMs(): number {
    // an absent kind cannot become stale
    if (this.#isAbsent) return 0;
    return this.#options.timing.monotonicMs() - this.#lastHeardAtMs;
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the reflector was stopped'));
    this.#relisting?.resolve();
    for (const end of this.#gauges) end();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#interruption = new AbortController();
      const pauseMs = await this.#listAndWatch();
      const either = AbortSignal.any([signal, this.#interruption.signal]);
      await sleep(this.#options.timing, pauseMs, either).catch(() => undefined);
    }
  }

  /** Lists if needed and watches until the stream ends. Returns the pause before the next round. */
  async #listAndWatch(): Promise<number> {
    let fault: unknown;
    try {
      if (this.#version === undefined) await this.#list();
      this.#relisting?.resolve();
      await this.#watch();
    } catch (error) {
      if (error === relistRequested) {
        this.#openedAtMs = undefined;
        return 0;
      }
      fault = error;
      this.#relisting?.resolve();
    }
    const { timing } = this.#options;
    const isHealthy = this.#openedAtMs !== undefined && timing.monotonicMs() - this.#openedAtMs >= healthyMs;
    this.#openedAtMs = undefined;
    if (this.#stopping.signal.aborted) return 0;
    if (isHealthy) {
      this.#backoff.reset();
      this.#expirations = 0;
    }
    if (fault === undefined) return isHealthy ? 0 : this.#backoff.next();
    const isAbsent = this.#options.isOptional === true && isApiError(fault, 'NotFound');
    return isAbsent ? this.#handleAbsence() : this.#recover(fault);
  }

  /** Empties the store of an absent kind. Returns the pause before the next attempt. */
  #handleAbsence(): number {
    const { store, namespace, timing } = this.#options;
    store.replace([], namespace);
    this.#version = undefined;
    this.#fault = undefined;
    this.#markSynced(false);
    return absentMs * (0.9 + 0.2 * timing.random());
  }

  /** Marks the store as synced. */
  #markSynced(isServed: boolean): void {
    const { log, onServed } = this.#options;
    const isNews = isServed !== this.#isServed;
    if (!isServed && !this.#isAbsent)
      log.info({ subject: this.#name }, 'The cluster does not serve this kind');
    this.#isServed = isServed;
    this.#isAbsent = !isServed;
    this.#wasListed = true;
    this.#firstList.resolve();
    if (isNews) onServed?.(isServed);
  }

  /** Records a fault and decides about the resource version. Returns the pause before the next round. */
  #recover(fault: unknown): number {
    const { log, metrics } = this.#options;
    const cause = causeOf(fault);
    this.#fault = fault;
    metrics.informer.failures.inc({ resource: this.#name, cause });
    log.warn({ err: fault, subject: this.#name, cause }, 'Watch failed and is resumed');
    const isRefused = isApiError(fault) && fault.reason !== 'Network';
    this.#refusedStreams = isRefused ? this.#refusedStreams + 1 : 0;
    if (cause === 'Gone') {
      this.#version = undefined;
      this.#expirations += 1;
      return this.#expirations === 1 ? 0 : this.#backoff.next();
    }
    if (this.#refusedStreams >= maxRefusedStreams) {
      this.#version = undefined;
      this.#refusedStreams = 0;
    }
    const askedMs = isApiError(fault) ? (fault.retryAfterMs ?? 0) : 0;
    return Math.max(askedMs, this.#backoff.next());
  }

  async #list(): Promise<void> {
    const { store, metrics, log } = this.#options;
    // the first list may come from the server's cache; after an expired version only a fresh one is certainly newer
    const found = await fetchList(this.#options.api, this.#options, {
      isFresh: this.#wasListed || this.#relisting !== undefined,
      signal: this.#stopping.signal,
    });
    // a relist was requested meanwhile, and this list is older
    this.#interruption.signal.throwIfAborted();
    const stripped = found.objects.map((object) => this.#stripped(object));
    store.replace(stripped, this.#options.namespace);
    this.#version = found.resourceVersion;
    this.#lastHeardAtMs = this.#options.timing.monotonicMs();
    metrics.informer.lists.inc({ resource: this.#name });
    log.info({ subject: this.#name, count: found.objects.length }, 'Listed');
    this.#markSynced(true);
  }

  async #watch(): Promise<void> {
    const { api, timing, resource, namespace } = this.#options;
    const stream = new AbortController();
    const interrupted = this.#interruption.signal;
    const signal = AbortSignal.any([stream.signal, interrupted, this.#stopping.signal]);
    const silence = new BrokenStream('silent', `no data for ${silenceMs} ms`);
    const watchdog = createWatchdog(timing, silenceMs, () => stream.abort(silence));
    try {
      const request = { verb: 'watch', resource, namespace } as const;
      const pieces = await api.watch({
        ...request,
        query: this.#watchQuery(),
        accept: this.#accept(),
        signal,
      });
      this.#openedAtMs = timing.monotonicMs();
      this.#fault = undefined;
      const noteActivity = () => {
        this.#lastHeardAtMs = timing.monotonicMs();
        watchdog.reset();
      };
      noteActivity();
      for await (const event of decodeEvents(tap(pieces, noteActivity))) {
        if (event.type === 'ERROR') throw refusedInStream(event.object, request);
        this.#applyEvent(event);
      }
    } catch (error) {
      interrupted.throwIfAborted();
      stream.signal.throwIfAborted();
      throw error;
    } finally {
      watchdog.stop();
      stream.abort();
    }
  }

  #watchQuery(): Record<string, string> {
    const { labelSelector, timing } = this.#options;
    const seconds = Math.round(watchSeconds * (1 + timing.random()));
    return {
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(seconds),
      resourceVersion: this.#version ?? '',
      ...(labelSelector === undefined ? {} : { labelSelector }),
    };
  }

  #accept(): string {
    const partial = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
    return this.#options.metadataOnly === true ? `${partial},application/json` : 'application/json';
  }

  #applyEvent({ type, object: value }: WatchEvent): void {
    const object = parseObject(type === 'BOOKMARK' ? nameless(value) : value, this.#options.resource);
    const { resourceVersion } = object.metadata;
    if (resourceVersion === undefined || resourceVersion === '') {
      throw new BrokenStream('malformed', 'an event of the watch has no resource version');
    }
    const { store } = this.#options;
    if (type === 'DELETED') store.remove(this.#stripped(object));
    else if (type !== 'BOOKMARK') store.put(this.#stripped(object));
    this.#version = resourceVersion;
    this.#refusedStreams = 0;
  }

  #stripped(object: KubeObject): KubeObject {
    const { metadataOnly, resource } = this.#options;
    if (metadataOnly !== true) return withoutManagedFields(object);
    const { metadata } = object;
    return withoutManagedFields({ apiVersion: apiVersionOf(resource), kind: resource.kind, metadata });
  }
}

/** Gives the object of a bookmark an empty name, because it has none. */
function nameless(value: unknown): unknown {
  if (!isRecord(value) || !isRecord(value['metadata'])) return value;
  return { ...value, metadata: { name: '', ...value['metadata'] } };
}

async function* tap(pieces: AsyncIterable<Uint8Array>, noteActivity: () => void): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    noteActivity();
    yield piece;
  }
}

function refusedInStream(body: unknown, request: { verb: 'watch'; resource: Resource }): ApiError {
  const code = isRecord(body) && typeof body['code'] === 'number' ? body['code'] : 500;
  return new ApiError(statusReasonOf(code, body), request, messageOf(code, body), { status: code });
}

function causeOf(fault: unknown): string {
  if (isApiError(fault)) return fault.reason;
  if (fault instanceof BrokenStream) return fault.flaw;
  return isAppError(fault) ? fault.code : 'closed';
}

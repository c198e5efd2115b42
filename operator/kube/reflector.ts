import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Api } from './api.ts';
import { ApiError, isApiError, messageOf, refusalOf } from './errors.ts';
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
  withoutBookkeeping,
} from './resource.ts';
import type { Store } from './store.ts';
import { rest, type Timing } from './time.ts';
import { BrokenStream, createWatchdog, decodeEvents, type WatchEvent } from './watch.ts';

export interface ReflectorOptions extends Selection {
  readonly api: Api;
  readonly store: Store;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  readonly log: Logger;
  /** Not every cluster has this kind: its absence is no fault, and every five minutes it is looked for. */
  readonly isOptional?: boolean | undefined;
  /** Called when a kind that is optional has come or gone. */
  readonly onServed?: ((isServed: boolean) => void) | undefined;
}

/** Bookmarks come every minute; a stream that is silent for longer has lost its other end. */
const SILENCE_MS = 90_000;
/** Why a stream ended that was only to be begun anew. */
const renewed = new Error('the cache is renewed');
const WATCH_SECONDS = 300;
/** A stream that lived this long was a good one. */
const HEALTHY_MS = 5_000;
/** How often an optional kind that is absent is looked for. */
const ABSENT_MS = 300_000;
/** After so many streams in a row that only brought a refusal, the position itself is suspect. */
const BARREN_STREAMS = 5;

/**
 * Keeps a store equal to what the cluster has: a list, then a watch from there, and again from where it ended. Every
 * fault ends the stream and is answered by resuming after a pause; only a position that the server no longer knows is
 * answered by a new list. So no change is missed, and a fault costs at most one list. A kind that is optional and absent
 * counts as listed, without objects.
 */
export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #name: string;
  readonly #stopping = new AbortController();
  #firstList = Promise.withResolvers<void>();
  readonly #backoff: Backoff;
  readonly #readings: (() => void)[];
  #running: Promise<void> | undefined;
  /** Position of the store; undefined when only a list can tell. */
  #version: string | undefined;
  #wasListed = false;
  #isServed = false;
  /** The cluster is known not to have the kind. */
  #isAbsent = false;
  #renewal: PromiseWithResolvers<void> | undefined;
  /** Ends a pause or a stream for the sake of a renewal. */
  #interruption = new AbortController();
  #spokeAtMs: number;
  #openedAtMs: number | undefined;
  #barren = 0;
  #fault: unknown;
  #gone = 0;

  constructor(options: ReflectorOptions) {
    const { timing, metrics, store, resource } = options;
    this.#options = options;
    this.#name = resourceName(resource);
    this.#backoff = createBackoff({ firstMs: 800, lastMs: 30_000 }, timing);
    this.#spokeAtMs = timing.monotonicMs();
    const labels = { resource: this.#name, namespace: options.namespace ?? '' };
    this.#readings = [
      metrics.informer.ages.add(labels, () => this.ageMs() / 1000),
      metrics.informer.objects.add(labels, () => store.size),
    ];
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when the first list is in the store, or the one of a renewal. */
  get synced(): Promise<void> {
    return this.#firstList.promise;
  }

  get isSynced(): boolean {
    return this.#wasListed;
  }

  /**
   * Lists anew, and counts as not listed until then. For who begins to act on the store: a watch whose connection is
   * half open may have kept news from it for as long as it takes to notice.
   * @returns resolves when that was tried, whether or not it went well
   */
  renew(): Promise<void> {
    this.#renewal?.resolve();
    this.#renewal = Promise.withResolvers();
    if (this.#wasListed) this.#firstList = Promise.withResolvers();
    this.#wasListed = false;
    this.#version = undefined;
    this.#interruption.abort(renewed);
    return this.#renewal.promise;
  }

  /** Whether the cluster has this kind, as of the last answer. */
  get isServed(): boolean {
    return this.#isServed;
  }

  /** What went wrong last; undefined while all is well. Of a Forbidden the message names the missing verb. */
  get fault(): unknown {
    return this.#fault;
  }

  /** Whether a watch is open. */
  get isConnected(): boolean {
    return this.#openedAtMs !== undefined;
  }

  /** Milliseconds since the cluster last spoke: twice the 90 s of silence and more means that the store is stale. */
  ageMs(): number {
    // of what does not exist nothing is missed
    if (this.#isAbsent) return 0;
    return this.#options.timing.monotonicMs() - this.#spokeAtMs;
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the reflector was stopped'));
    this.#renewal?.resolve();
    for (const end of this.#readings) end();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#interruption = new AbortController();
      const pauseMs = await this.#turn();
      const either = AbortSignal.any([signal, this.#interruption.signal]);
      await rest(this.#options.timing, pauseMs, either).catch(() => undefined);
    }
  }

  /** One list if needed and one watch, to its end. Gives the pause until the next. */
  async #turn(): Promise<number> {
    let fault: unknown;
    try {
      if (this.#version === undefined) await this.#list();
      this.#renewal?.resolve();
      await this.#follow();
    } catch (error) {
      if (error === renewed) {
        this.#openedAtMs = undefined;
        return 0;
      }
      fault = error;
      this.#renewal?.resolve();
    }
    const { timing } = this.#options;
    const isHealthy = this.#openedAtMs !== undefined && timing.monotonicMs() - this.#openedAtMs >= HEALTHY_MS;
    this.#openedAtMs = undefined;
    if (this.#stopping.signal.aborted) return 0;
    if (isHealthy) {
      this.#backoff.reset();
      this.#gone = 0;
    }
    if (fault === undefined) return isHealthy ? 0 : this.#backoff.next();
    const isAbsent = this.#options.isOptional === true && isApiError(fault, 'NotFound');
    return isAbsent ? this.#doWithout() : this.#recover(fault);
  }

  /** The cluster does not have the kind. Gives the pause until the next look. */
  #doWithout(): number {
    const { store, namespace, timing } = this.#options;
    store.replace([], namespace);
    this.#version = undefined;
    this.#fault = undefined;
    this.#settle(false);
    return ABSENT_MS * (0.9 + 0.2 * timing.random());
  }

  /** The store is as the cluster is. */
  #settle(isServed: boolean): void {
    const { log, onServed } = this.#options;
    const isNews = isServed !== this.#isServed;
    if (!isServed && !this.#isAbsent) log.info({ subject: this.#name }, 'Not served');
    this.#isServed = isServed;
    this.#isAbsent = !isServed;
    this.#wasListed = true;
    this.#firstList.resolve();
    if (isNews) onServed?.(isServed);
  }

  /** What a fault means for the position, and the pause it asks for. */
  #recover(fault: unknown): number {
    const { log, metrics } = this.#options;
    const cause = causeOf(fault);
    this.#fault = fault;
    metrics.informer.failures.inc({ resource: this.#name, cause });
    log.warn({ err: fault, subject: this.#name, cause }, 'Watch broke');
    const isRefused = isApiError(fault) && fault.refusal !== 'Network';
    this.#barren = isRefused ? this.#barren + 1 : 0;
    if (cause === 'Gone') {
      this.#version = undefined;
      this.#gone += 1;
      return this.#gone === 1 ? 0 : this.#backoff.next();
    }
    if (this.#barren >= BARREN_STREAMS) {
      this.#version = undefined;
      this.#barren = 0;
    }
    const askedMs = isApiError(fault) ? (fault.retryAfterMs ?? 0) : 0;
    return Math.max(askedMs, this.#backoff.next());
  }

  async #list(): Promise<void> {
    const { store, metrics, log } = this.#options;
    // The first list may come from the server's cache. After a lost position only a fresh one is sure to be newer.
    const found = await fetchList(this.#options.api, this.#options, {
      isFresh: this.#wasListed || this.#renewal !== undefined,
      signal: this.#stopping.signal,
    });
    // asked for anew meanwhile: this one is older than the question
    this.#interruption.signal.throwIfAborted();
    const kept = found.objects.map((object) => this.#keep(object));
    store.replace(kept, this.#options.namespace);
    this.#version = found.resourceVersion;
    this.#spokeAtMs = this.#options.timing.monotonicMs();
    metrics.informer.lists.inc({ resource: this.#name });
    log.info({ subject: this.#name, count: found.objects.length }, 'Listed');
    this.#settle(true);
  }

  async #follow(): Promise<void> {
    const { api, timing, resource, namespace } = this.#options;
    const stream = new AbortController();
    const interrupted = this.#interruption.signal;
    const signal = AbortSignal.any([stream.signal, interrupted, this.#stopping.signal]);
    const silence = new BrokenStream('silent', `nothing was heard for ${SILENCE_MS} ms`);
    const watchdog = createWatchdog(timing, SILENCE_MS, () => stream.abort(silence));
    try {
      const asked = { verb: 'watch', resource, namespace } as const;
      const pieces = await api.watch({ ...asked, query: this.#watchQuery(), accept: this.#accept(), signal });
      this.#openedAtMs = timing.monotonicMs();
      this.#fault = undefined;
      const heard = () => {
        this.#spokeAtMs = timing.monotonicMs();
        watchdog.pat();
      };
      heard();
      for await (const event of decodeEvents(tap(pieces, heard))) {
        if (event.type === 'ERROR') throw refusedInStream(event.object, asked);
        this.#take(event);
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
    const seconds = Math.round(WATCH_SECONDS * (1 + timing.random()));
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

  #take({ type, object: value }: WatchEvent): void {
    const object = parseObject(type === 'BOOKMARK' ? nameless(value) : value, this.#options.resource);
    const { resourceVersion } = object.metadata;
    if (resourceVersion === undefined || resourceVersion === '') {
      throw new BrokenStream('malformed', 'an event of the watch has no version');
    }
    const { store } = this.#options;
    if (type === 'DELETED') store.remove(this.#keep(object));
    else if (type !== 'BOOKMARK') store.put(this.#keep(object));
    this.#version = resourceVersion;
    this.#barren = 0;
  }

  #keep(object: KubeObject): KubeObject {
    const { metadataOnly, resource } = this.#options;
    if (metadataOnly !== true) return withoutBookkeeping(object);
    const { metadata } = object;
    return withoutBookkeeping({ apiVersion: apiVersionOf(resource), kind: resource.kind, metadata });
  }
}

/** A bookmark has an object without a name. */
function nameless(value: unknown): unknown {
  if (!isRecord(value) || !isRecord(value['metadata'])) return value;
  return { ...value, metadata: { name: '', ...value['metadata'] } };
}

async function* tap(pieces: AsyncIterable<Uint8Array>, heard: () => void): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    heard();
    yield piece;
  }
}

function refusedInStream(body: unknown, asked: { verb: 'watch'; resource: Resource }): ApiError {
  const code = isRecord(body) && typeof body['code'] === 'number' ? body['code'] : 500;
  return new ApiError(refusalOf(code, body), asked, messageOf(code, body), { status: code });
}

function causeOf(fault: unknown): string {
  if (isApiError(fault)) return fault.refusal;
  if (fault instanceof BrokenStream) return fault.flaw;
  return isAppError(fault) ? fault.code : 'closed';
}

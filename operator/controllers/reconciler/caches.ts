import type { Timing } from '#kit/clock/timing.ts';
import type { ReadinessCheck } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { operatorError } from '../../errors.ts';
import type { Api } from '../../kube/api.ts';
import type { Selection } from '../../kube/list.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { Reflector } from '../../kube/reflector.ts';
import { type Resource, resourceName } from '../../kube/resource.ts';
import { byOwner, type Cache, type Indexer, ownerIndex, Store } from '../../kube/store.ts';

/** A kind that is cached, and which of its objects. */
export interface WatchedKind extends Omit<Selection, 'namespace'> {
  /** In addition to the index of owners. */
  readonly indexers?: Readonly<Record<string, Indexer>>;
  /** The kind may be absent from the cluster. */
  readonly isOptional?: boolean;
}

interface CachesOptions {
  readonly api: Api;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  readonly log: Logger;
  /** Every namespace when undefined. */
  readonly namespaces: readonly string[] | undefined;
  readonly watched: readonly WatchedKind[];
}

interface CachedKind {
  readonly resource: Resource;
  readonly store: Store;
  readonly reflectors: readonly Reflector[];
  readonly listeners: Set<() => void>;
}

/** Twice the silence after which a watch is reopened. */
const staleMs = 180_000;
/** Limit of the wait for a relist; conditions report the kinds that are not listed. */
const relistTimeoutMs = 5_000;

/** The operator's caches: one store per kind, filled by one watch per namespace. */
export class Caches {
  readonly #kinds = new Map<string, CachedKind>();
  readonly #timing: Timing;

  constructor(options: CachesOptions) {
    const { api, timing, metrics, log, namespaces } = options;
    this.#timing = timing;
    const report = (error: unknown) => log.error({ err: error }, 'A listener of a cache failed');
    for (const { indexers, ...selection } of options.watched) {
      const store = new Store({ [ownerIndex]: byOwner, ...indexers }, report);
      const listeners = new Set<() => void>();
      const onServed = () => {
        for (const listener of listeners) listener();
      };
      const common = { ...selection, api, store, timing, metrics, log, onServed };
      const reflectors = (namespaces ?? [undefined]).map(
        (namespace) => new Reflector({ ...common, namespace }),
      );
      const { resource } = selection;
      this.#kinds.set(resourceName(resource), { resource, store, reflectors, listeners });
    }
  }

  start(): void {
    for (const { reflectors } of this.#kinds.values()) for (const each of reflectors) each.start();
  }

  async stop(): Promise<void> {
    const all = [...this.#kinds.values()].flatMap(({ reflectors }) => reflectors);
    await Promise.all(all.map((each) => each.stop()));
  }

  /** The cache of a kind; undefined for a kind that is not watched. */
  find(resource: Resource): Cache | undefined {
    return this.#kinds.get(resourceName(resource))?.store;
  }

  /**
   * The cache of a watched kind.
   * @throws AppError internal KIND_NOT_WATCHED
   */
  of(resource: Resource): Cache {
    const cache = this.find(resource);
    if (cache !== undefined) return cache;
    throw operatorError('KIND_NOT_WATCHED', `${resourceName(resource)} is not watched`);
  }

  /** Whether the cluster serves an optional kind, as of the last answer. */
  isServed(resource: Resource): boolean {
    const { reflectors = [] } = this.#kinds.get(resourceName(resource)) ?? {};
    return reflectors.some((each) => each.isServed);
  }

  /** Calls back when an optional kind becomes available or unavailable. Returns a function that unsubscribes. */
  onServed(resource: Resource, listener: () => void): () => void {
    const { listeners } = this.#kinds.get(resourceName(resource)) ?? {};
    listeners?.add(listener);
    return () => void listeners?.delete(listener);
  }

  /** Resolves when a kind is listed in every namespace. */
  async synced(resource: Resource): Promise<void> {
    const { reflectors = [] } = this.#kinds.get(resourceName(resource)) ?? {};
    await Promise.all(reflectors.map((each) => each.synced));
  }

  /**
   * Lists every kind again, for a new leader. Until a kind is listed, reconciles that need it are refused. Resolves when all
   * lists were attempted, after 5 s at most.
   */
  async relist(): Promise<void> {
    const all = [...this.#kinds.values()].flatMap(({ reflectors }) => reflectors);
    const late = Promise.withResolvers<void>();
    const cancel = this.#timing.after(relistTimeoutMs, late.resolve);
    await Promise.race([Promise.all(all.map((each) => each.relist())), late.promise]);
    cancel();
  }

  /**
   * Verifies that all of these kinds are listed.
   * @throws the fault of a kind that is not listed, which names the missing verb; AppError unavailable CACHE_NOT_SYNCED
   */
  require(resources: readonly Resource[]): void {
    for (const resource of resources) {
      const name = resourceName(resource);
      const missing = this.#kinds.get(name)?.reflectors.find((each) => !each.isSynced);
      if (missing === undefined) continue;
      throw missing.fault ?? operatorError('CACHE_NOT_SYNCED', `${name} are not listed yet`);
    }
  }

  /** Ready while every kind is listed and its watch is not stale. */
  get readiness(): ReadinessCheck {
    return { name: 'caches', check: () => this.#checkFresh() };
  }

  #checkFresh(): void {
    this.require([...this.#kinds.values()].map(({ resource }) => resource));
    for (const { resource, reflectors } of this.#kinds.values()) {
      const ageMs = Math.max(...reflectors.map((each) => each.ageMs()));
      if (ageMs > staleMs) {
        const seconds = Math.round(ageMs / 1000);
        const text = `no data about ${resourceName(resource)} for ${seconds} s`;
        throw operatorError('CACHE_STALE', text);
      }
    }
  }
}

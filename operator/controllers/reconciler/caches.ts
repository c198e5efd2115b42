import { AppError } from '#core/errors/errors.ts';
import type { ReadinessCheck } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Api } from '../../kube/api.ts';
import type { Selection } from '../../kube/list.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { Reflector } from '../../kube/reflector.ts';
import { type Resource, resourceName } from '../../kube/resource.ts';
import { byOwner, type Cache, type Indexer, ownerIndex, Store } from '../../kube/store.ts';
import type { Timing } from '../../kube/time.ts';

/** A kind that is kept in memory, and which of its objects. */
export interface Watched extends Omit<Selection, 'namespace'> {
  /** Besides the index of owners. */
  readonly indexers?: Readonly<Record<string, Indexer>>;
  /** Only some clusters have this kind. */
  readonly isOptional?: boolean;
}

export interface CachesOptions {
  readonly api: Api;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  readonly log: Logger;
  /** Every namespace when undefined. */
  readonly namespaces: readonly string[] | undefined;
  readonly watched: readonly Watched[];
}

interface Kept {
  readonly resource: Resource;
  readonly store: Store;
  readonly reflectors: readonly Reflector[];
  readonly listeners: Set<() => void>;
}

/** Twice the silence after which a watch is opened anew. */
const STALE_MS = 180_000;
/** Nobody waits longer for lists that do not come: conditions say which. */
const RENEWAL_MS = 5_000;

/** What the operator knows of the cluster: one store a kind, filled by one watch a namespace. */
export class Caches {
  readonly #kept = new Map<string, Kept>();
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
      this.#kept.set(resourceName(resource), { resource, store, reflectors, listeners });
    }
  }

  start(): void {
    for (const { reflectors } of this.#kept.values()) for (const each of reflectors) each.start();
  }

  async stop(): Promise<void> {
    const all = [...this.#kept.values()].flatMap(({ reflectors }) => reflectors);
    await Promise.all(all.map((each) => each.stop()));
  }

  /** The cache of a kind; undefined for one that is not watched. */
  find(resource: Resource): Cache | undefined {
    return this.#kept.get(resourceName(resource))?.store;
  }

  /**
   * The cache of a kind that is watched.
   * @throws AppError internal KIND_NOT_WATCHED
   */
  of(resource: Resource): Cache {
    const cache = this.find(resource);
    if (cache !== undefined) return cache;
    throw new AppError('internal', 'KIND_NOT_WATCHED', `${resourceName(resource)} is not watched`);
  }

  /** Whether the cluster has an optional kind, as far as is known. */
  isServed(resource: Resource): boolean {
    const { reflectors = [] } = this.#kept.get(resourceName(resource)) ?? {};
    return reflectors.some((each) => each.isServed);
  }

  /** Calls back when an optional kind has come or gone. Returns the function that ends it. */
  onServed(resource: Resource, listener: () => void): () => void {
    const { listeners } = this.#kept.get(resourceName(resource)) ?? {};
    listeners?.add(listener);
    return () => void listeners?.delete(listener);
  }

  /** Resolves when a kind was listed in every namespace. */
  async synced(resource: Resource): Promise<void> {
    const { reflectors = [] } = this.#kept.get(resourceName(resource)) ?? {};
    await Promise.all(reflectors.map((each) => each.synced));
  }

  /**
   * Lists every kind anew, for who is about to act on the caches: until a kind was listed nothing is done that needs it.
   * Resolves when all were asked for, after 5 s at most.
   */
  async relist(): Promise<void> {
    const all = [...this.#kept.values()].flatMap(({ reflectors }) => reflectors);
    const late = Promise.withResolvers<void>();
    const cancel = this.#timing.after(RENEWAL_MS, late.resolve);
    await Promise.race([Promise.all(all.map((each) => each.relist())), late.promise]);
    cancel();
  }

  /**
   * Makes sure that all of these kinds were listed.
   * @throws what kept one from being listed, which names the missing verb; AppError unavailable CACHE_NOT_SYNCED
   */
  require(resources: readonly Resource[]): void {
    for (const resource of resources) {
      const name = resourceName(resource);
      const missing = this.#kept.get(name)?.reflectors.find((each) => !each.isSynced);
      if (missing === undefined) continue;
      throw missing.fault ?? new AppError('unavailable', 'CACHE_NOT_SYNCED', `${name} are not listed yet`);
    }
  }

  /** Ready while every kind is listed and the cluster was heard of lately. */
  get readiness(): ReadinessCheck {
    return { name: 'caches', check: () => this.#checkFresh() };
  }

  #checkFresh(): void {
    this.require([...this.#kept.values()].map(({ resource }) => resource));
    for (const { resource, reflectors } of this.#kept.values()) {
      const ageMs = Math.max(...reflectors.map((each) => each.ageMs()));
      if (ageMs > STALE_MS) {
        const seconds = Math.round(ageMs / 1000);
        const text = `nothing was heard about ${resourceName(resource)} for ${seconds} s`;
        throw new AppError('unavailable', 'CACHE_STALE', text);
      }
    }
  }
}

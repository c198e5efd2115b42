import { type KubeObject, keyOf, splitKey } from './resource.ts';

/** Values of an index for an object. */
export type Indexer = (object: KubeObject) => readonly string[];

export interface Change {
  readonly type: 'added' | 'updated' | 'deleted';
  readonly key: string;
  /** The new object; for a deletion the last known one. */
  readonly object: KubeObject;
  readonly before?: KubeObject | undefined;
}

/** Called after the store has changed. It must not block; its errors go to the store's `onFault`. */
type Listener = (change: Change) => void;

/** Read side of a cache. It lags behind the cluster; its objects are immutable. */
export interface Cache {
  find(key: string): KubeObject | undefined;
  list(): readonly KubeObject[];
  /** Objects with this value in the index of that name. */
  findBy(index: string, value: string): readonly KubeObject[];
  /** @returns a function that unsubscribes */
  subscribe(listener: Listener): () => void;
}

/** Index of `metadata.ownerReferences` by uid. */
export const ownerIndex = 'owner';

/** Uids of all owners of an object. */
export const byOwner: Indexer = ({ metadata }) => metadata.ownerReferences?.map((each) => each.uid) ?? [];

/** Objects of one kind by key, with indexes. Only the reflector writes it. */
export class Store implements Cache {
  readonly #objects = new Map<string, KubeObject>();
  readonly #indexes = new Map<
    string,
    { readonly indexer: Indexer; readonly keys: Map<string, Set<string>> }
  >();
  readonly #listeners = new Set<Listener>();
  readonly #onFault: (error: unknown) => void;

  constructor(indexers: Readonly<Record<string, Indexer>>, onFault: (error: unknown) => void) {
    this.#onFault = onFault;
    for (const [name, indexer] of Object.entries(indexers)) {
      this.#indexes.set(name, { indexer, keys: new Map() });
    }
  }

  get size(): number {
    return this.#objects.size;
  }

  find(key: string): KubeObject | undefined {
    return this.#objects.get(key);
  }

  list(): readonly KubeObject[] {
    return [...this.#objects.values()];
  }

  findBy(index: string, value: string): readonly KubeObject[] {
    const keys = this.#indexes.get(index)?.keys.get(value) ?? [];
    return [...keys].flatMap((key) => this.#objects.get(key) ?? []);
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Takes an object; one that is known in this very version is no change. */
  put(object: KubeObject): void {
    this.#notify(this.#set(object));
  }

  remove(object: KubeObject): void {
    this.#notify(this.#delete(keyOf(object.metadata), object));
  }

  /**
   * Replaces the content with a complete list, of one namespace if given. Listeners are notified after the whole list is
   * stored.
   */
  replace(objects: readonly KubeObject[], namespace?: string): void {
    const listedKeys = new Set(objects.map((object) => keyOf(object.metadata)));
    const isListed = (key: string) => namespace === undefined || splitKey(key).namespace === namespace;
    const gone = [...this.#objects.keys()].filter((key) => !listedKeys.has(key) && isListed(key));
    const changes = [...gone.map((key) => this.#delete(key)), ...objects.map((object) => this.#set(object))];
    for (const change of changes) this.#notify(change);
  }

  #set(object: KubeObject): Change | undefined {
    const key = keyOf(object.metadata);
    const before = this.#objects.get(key);
    const { resourceVersion, uid } = object.metadata;
    const isKnown = before?.metadata.resourceVersion === resourceVersion && before?.metadata.uid === uid;
    if (before !== undefined && resourceVersion !== undefined && isKnown) return undefined;
    if (before !== undefined) this.#unindex(key, before);
    this.#objects.set(key, object);
    for (const { indexer, keys } of this.#indexes.values()) {
      for (const value of indexer(object)) {
        const found = keys.get(value) ?? new Set();
        keys.set(value, found.add(key));
      }
    }
    return { type: before === undefined ? 'added' : 'updated', key, object, before };
  }

  #delete(key: string, last?: KubeObject): Change | undefined {
    const before = this.#objects.get(key);
    if (before === undefined) return undefined;
    this.#unindex(key, before);
    this.#objects.delete(key);
    return { type: 'deleted', key, object: last ?? before, before };
  }

  #unindex(key: string, object: KubeObject): void {
    for (const { indexer, keys } of this.#indexes.values()) {
      for (const value of indexer(object)) {
        const found = keys.get(value);
        found?.delete(key);
        if (found?.size === 0) keys.delete(value);
      }
    }
  }

  #notify(change: Change | undefined): void {
    if (change === undefined) return;
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#onFault(error);
      }
    }
  }
}

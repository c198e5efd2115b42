import { type KubeObject, keyOf, splitKey } from './resource.ts';

/** What an object is found by, besides its key. */
export type Indexer = (object: KubeObject) => readonly string[];

export interface Change {
  readonly type: 'added' | 'updated' | 'deleted';
  readonly key: string;
  /** As it is now; as it was last seen when it is deleted. */
  readonly object: KubeObject;
  readonly before?: KubeObject | undefined;
}

/** Told after the store has changed. It takes note and returns: what it throws goes to the store's `onFault`. */
export type Listener = (change: Change) => void;

/** The read side of a cache. It is always a little behind; nothing in it is ever changed in place. */
export interface Cache {
  find(key: string): KubeObject | undefined;
  list(): readonly KubeObject[];
  /** Objects for which the indexer of that name gave that value. */
  findBy(index: string, value: string): readonly KubeObject[];
  /** @returns ends it */
  subscribe(listener: Listener): () => void;
}

/** Index of `metadata.ownerReferences` by uid. */
export const ownerIndex = 'owner';

/** Every uid that owns the object. */
export const byOwner: Indexer = ({ metadata }) => metadata.ownerReferences?.map((each) => each.uid) ?? [];

/** Objects of one kind by key, with indexes. A reflector writes it, everybody else reads. */
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
    this.#tell(this.#set(object));
  }

  remove(object: KubeObject): void {
    this.#tell(this.#delete(keyOf(object.metadata), object));
  }

  /**
   * Takes a complete list, of one namespace when it is named: what is not in it is gone. Listeners hear of it when all
   * of it is in place.
   */
  replace(objects: readonly KubeObject[], namespace?: string): void {
    const kept = new Set(objects.map((object) => keyOf(object.metadata)));
    const isListed = (key: string) => namespace === undefined || splitKey(key).namespace === namespace;
    const gone = [...this.#objects.keys()].filter((key) => !kept.has(key) && isListed(key));
    const changes = [...gone.map((key) => this.#delete(key)), ...objects.map((object) => this.#set(object))];
    for (const change of changes) this.#tell(change);
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

  #tell(change: Change | undefined): void {
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

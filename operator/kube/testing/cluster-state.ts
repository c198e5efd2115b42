import { randomUUID } from 'node:crypto';
import { canonicalText } from '../compare.ts';
import { isRecord, type KubeObject, keyOf, parseObject } from '../resource.ts';
import { fieldsOf, mergeApplied, type Ownership } from './server-side-apply.ts';

/** An object or a collection, parsed from a path. */
export interface Target {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** A refusal with a Kubernetes status reason. */
export class StatusError extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string = reason) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

export interface StateEvent {
  readonly version: number;
  readonly collection: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

interface StoredObject {
  object: KubeObject;
  readonly owners: Ownership;
}

/** Resources without metadata.generation. */
const resourcesWithoutGeneration = new Set([
  'configmaps',
  'secrets',
  'services',
  'serviceaccounts',
  'leases',
  'events',
]);

/** In-memory state of an API server: resource versions, generations, field ownership and watch history. */
export class ClusterState {
  readonly #objects = new Map<string, Map<string, StoredObject>>();
  readonly #history: StateEvent[] = [];
  readonly #watchers = new Set<(event: StateEvent) => void>();
  #version = 1000;
  #oldest = 1000;
  writes = 0;

  get version(): number {
    return this.#version;
  }

  /** Drops the history: a watch from an earlier version is refused as expired. */
  compact(): void {
    this.#version += 1;
    this.#oldest = this.#version;
  }

  static collectionOf({ group, plural }: Pick<Target, 'group' | 'plural'>): string {
    return `${group}/${plural}`;
  }

  list(target: Target): readonly KubeObject[] {
    const all = [...this.#collection(target).values()].map(({ object }) => object);
    return all.filter(
      ({ metadata }) => target.namespace === undefined || metadata.namespace === target.namespace,
    );
  }

  get(target: Target): KubeObject {
    return this.#stored(target).object;
  }

  create(target: Target, body: unknown): KubeObject {
    const given = parseObject(body);
    const where = { ...target, name: given.metadata.name };
    if (this.#collection(target).has(keyFor(where))) throw new StatusError(409, 'AlreadyExists');
    return this.#insert(where, given, new Map());
  }

  update(target: Target, body: unknown): KubeObject {
    const stored = this.#stored(target);
    const given = parseObject(body);
    const desired = given.metadata.resourceVersion;
    if (desired !== undefined && desired !== stored.object.metadata.resourceVersion)
      throw new StatusError(409, 'Conflict');
    return this.#store(target, stored, given);
  }

  merge(target: Target, body: unknown): KubeObject {
    const stored = this.#stored(target);
    return this.#store(target, stored, parseObject(mergePatch(stored.object, body)));
  }

  apply(target: Target, body: unknown, manager: string): KubeObject {
    const given = parseObject(body);
    const stored = this.#collection(target).get(keyFor(target));
    const uid = given.metadata.uid;
    if (stored === undefined) {
      if (uid !== undefined)
        throw new StatusError(409, 'Conflict', 'uid mismatch: no existing object was found');
      if (target.subresource !== undefined) throw new StatusError(404, 'NotFound');
      const owners: Ownership = new Map();
      const { apiVersion, kind } = given;
      const empty = { apiVersion, kind, metadata: { name: given.metadata.name } };
      return this.#insert(target, parseObject(mergeApplied(empty, given, manager, owners)), owners);
    }
    if (uid !== undefined && uid !== stored.object.metadata.uid)
      throw new StatusError(409, 'Conflict', 'uid mismatch');
    const isStatus = target.subresource === 'status';
    const part = isStatus ? { status: given['status'] } : { ...given, status: undefined };
    const owner = isStatus ? `${manager}/status` : manager;
    return this.#store(
      target,
      stored,
      parseObject(mergeApplied({ ...stored.object }, part, owner, stored.owners)),
    );
  }

  delete(target: Target, body: unknown): KubeObject {
    const stored = this.#stored(target);
    const preconditions = isRecord(body) && isRecord(body['preconditions']) ? body['preconditions'] : {};
    if (preconditions['uid'] !== undefined && preconditions['uid'] !== stored.object.metadata.uid) {
      throw new StatusError(409, 'Conflict', 'uid precondition failed');
    }
    if ((stored.object.metadata.finalizers ?? []).length > 0) {
      const deletionTimestamp = new Date(0).toISOString();
      const metadata = { ...stored.object.metadata, deletionTimestamp };
      return this.#store(target, stored, { ...stored.object, metadata });
    }
    this.#collection(target).delete(keyFor(target));
    const object = this.#stamped(stored.object);
    this.#notify(target, 'DELETED', object);
    return object;
  }

  /**
   * Sends the events since a version, then new ones.
   * @returns a function that ends the watch; undefined when the version has expired
   */
  watch(target: Target, from: number, onEvent: (event: StateEvent) => void): (() => void) | undefined {
    if (from < this.#oldest) return undefined;
    const collection = ClusterState.collectionOf(target);
    const concerns = (each: StateEvent) =>
      each.collection === collection &&
      (target.namespace === undefined || each.object.metadata.namespace === target.namespace);
    for (const each of this.#history.filter(({ version }) => version > from)) {
      if (concerns(each)) onEvent(each);
    }
    const listener = (each: StateEvent) => {
      if (concerns(each)) onEvent(each);
    };
    this.#watchers.add(listener);
    return () => void this.#watchers.delete(listener);
  }

  #collection(target: Target): Map<string, StoredObject> {
    const name = ClusterState.collectionOf(target);
    const found = this.#objects.get(name) ?? new Map<string, StoredObject>();
    this.#objects.set(name, found);
    return found;
  }

  #stored(target: Target): StoredObject {
    const found = this.#collection(target).get(keyFor(target));
    if (found === undefined)
      throw new StatusError(404, 'NotFound', `${target.plural} "${target.name}" not found`);
    return found;
  }

  #insert(target: Target, given: KubeObject, owners: Ownership): KubeObject {
    const namespace = target.namespace === undefined ? {} : { namespace: target.namespace };
    const generation = resourcesWithoutGeneration.has(target.plural) ? {} : { generation: 1 };
    const metadata = { ...given.metadata, ...namespace, ...generation, uid: randomUUID() };
    const object = this.#stamped({ ...given, metadata: { ...metadata, ...managed(owners) } });
    this.#collection(target).set(keyFor(target), { object, owners });
    this.#notify(target, 'ADDED', object);
    return object;
  }

  /** A write without a change creates no new version. A change of more than metadata and status increments the generation. */
  #store(target: Target, stored: StoredObject, next: KubeObject): KubeObject {
    const { uid, generation, resourceVersion, namespace } = stored.object.metadata;
    const own = Object.entries({ uid, generation, resourceVersion, namespace }).filter(
      (each) => each[1] !== undefined,
    );
    const metadata = { ...next.metadata, ...Object.fromEntries(own), ...managed(stored.owners) };
    const same = { ...next, metadata };
    if (canonicalText(same) === canonicalText(stored.object)) return stored.object;
    const content = (object: KubeObject) => canonicalText({ ...object, metadata: 0, status: 0 });
    const isNew = generation !== undefined && content(next) !== content(stored.object);
    const counted = isNew ? { ...metadata, generation: generation + 1 } : metadata;
    stored.object = this.#stamped({ ...next, metadata: counted });
    const { finalizers = [], deletionTimestamp } = stored.object.metadata;
    if (deletionTimestamp !== undefined && finalizers.length === 0) {
      this.#collection(target).delete(keyFor(target));
      this.#notify(target, 'DELETED', stored.object);
    } else {
      this.#notify(target, 'MODIFIED', stored.object);
    }
    return stored.object;
  }

  #stamped(object: KubeObject): KubeObject {
    this.#version += 1;
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
  }

  #notify(target: Target, type: StateEvent['type'], object: KubeObject): void {
    this.writes += 1;
    const collection = ClusterState.collectionOf(target);
    const event = { version: this.#version, collection, type, object };
    this.#history.push(event);
    for (const watcher of [...this.#watchers]) watcher(event);
  }
}

function keyFor({ namespace, name = '' }: Target): string {
  return keyOf(namespace === undefined ? { name } : { namespace, name });
}

function managed(owners: Ownership): Pick<KubeObject['metadata'], 'managedFields'> {
  if (owners.size === 0) return {};
  return {
    managedFields: [...owners].map(([manager, paths]) => ({
      manager,
      operation: 'Apply',
      fieldsV1: fieldsOf(paths),
    })),
  };
}

/** RFC 7396. */
function mergePatch(live: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged: Record<string, unknown> = isRecord(live) ? { ...live } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}

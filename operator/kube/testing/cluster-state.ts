import { randomUUID } from 'node:crypto';
import { canonicalText } from '../compare.ts';
import { isRecord, type KubeObject, keyOf, parseObject } from '../resource.ts';
import { fieldsOf, mergeApplied, type Ownership } from './server-side-apply.ts';

/** An object or a collection, as a path names it. */
export interface Target {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** A refusal, with the reason of the API server. */
export class Refused extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string = reason) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

export interface Happening {
  readonly version: number;
  readonly collection: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

interface Kept {
  object: KubeObject;
  readonly owners: Ownership;
}

/** Kinds that count no generations. */
const ungenerated = new Set(['configmaps', 'secrets', 'services', 'serviceaccounts', 'leases', 'events']);

/** What an API server knows, with its rules about versions, generations, field owners and history; in memory. */
export class ClusterState {
  readonly #objects = new Map<string, Map<string, Kept>>();
  readonly #history: Happening[] = [];
  readonly #watchers = new Set<(happening: Happening) => void>();
  #version = 1000;
  #oldest = 1000;
  writes = 0;

  get version(): number {
    return this.#version;
  }

  /** Forgets history: a watch from any version before this one is refused as expired. */
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
    return this.#kept(target).object;
  }

  create(target: Target, body: unknown): KubeObject {
    const given = parseObject(body);
    const where = { ...target, name: given.metadata.name };
    if (this.#collection(target).has(keyFor(where))) throw new Refused(409, 'AlreadyExists');
    return this.#insert(where, given, new Map());
  }

  update(target: Target, body: unknown): KubeObject {
    const kept = this.#kept(target);
    const given = parseObject(body);
    const wanted = given.metadata.resourceVersion;
    if (wanted !== undefined && wanted !== kept.object.metadata.resourceVersion)
      throw new Refused(409, 'Conflict');
    return this.#store(target, kept, given);
  }

  merge(target: Target, body: unknown): KubeObject {
    const kept = this.#kept(target);
    return this.#store(target, kept, parseObject(mergePatch(kept.object, body)));
  }

  apply(target: Target, body: unknown, manager: string): KubeObject {
    const given = parseObject(body);
    const kept = this.#collection(target).get(keyFor(target));
    const uid = given.metadata.uid;
    if (kept === undefined) {
      if (uid !== undefined) throw new Refused(409, 'Conflict', 'uid mismatch: no existing object was found');
      if (target.subresource !== undefined) throw new Refused(404, 'NotFound');
      const owners: Ownership = new Map();
      const { apiVersion, kind } = given;
      const empty = { apiVersion, kind, metadata: { name: given.metadata.name } };
      return this.#insert(target, parseObject(mergeApplied(empty, given, manager, owners)), owners);
    }
    if (uid !== undefined && uid !== kept.object.metadata.uid)
      throw new Refused(409, 'Conflict', 'uid mismatch');
    const isStatus = target.subresource === 'status';
    const part = isStatus ? { status: given['status'] } : { ...given, status: undefined };
    const owner = isStatus ? `${manager}/status` : manager;
    return this.#store(target, kept, parseObject(mergeApplied({ ...kept.object }, part, owner, kept.owners)));
  }

  delete(target: Target, body: unknown): KubeObject {
    const kept = this.#kept(target);
    const preconditions = isRecord(body) && isRecord(body['preconditions']) ? body['preconditions'] : {};
    if (preconditions['uid'] !== undefined && preconditions['uid'] !== kept.object.metadata.uid) {
      throw new Refused(409, 'Conflict', 'uid precondition failed');
    }
    if ((kept.object.metadata.finalizers ?? []).length > 0) {
      const deletionTimestamp = new Date(0).toISOString();
      const metadata = { ...kept.object.metadata, deletionTimestamp };
      return this.#store(target, kept, { ...kept.object, metadata });
    }
    this.#collection(target).delete(keyFor(target));
    const object = this.#stamped(kept.object);
    this.#tell(target, 'DELETED', object);
    return object;
  }

  /**
   * What happened since a version, then what happens.
   * @returns ends it; undefined when the version is too old
   */
  watch(target: Target, from: number, onHappening: (happening: Happening) => void): (() => void) | undefined {
    if (from < this.#oldest) return undefined;
    const collection = ClusterState.collectionOf(target);
    const concerns = (each: Happening) =>
      each.collection === collection &&
      (target.namespace === undefined || each.object.metadata.namespace === target.namespace);
    for (const each of this.#history.filter(({ version }) => version > from)) {
      if (concerns(each)) onHappening(each);
    }
    const listener = (each: Happening) => {
      if (concerns(each)) onHappening(each);
    };
    this.#watchers.add(listener);
    return () => void this.#watchers.delete(listener);
  }

  #collection(target: Target): Map<string, Kept> {
    const name = ClusterState.collectionOf(target);
    const found = this.#objects.get(name) ?? new Map<string, Kept>();
    this.#objects.set(name, found);
    return found;
  }

  #kept(target: Target): Kept {
    const found = this.#collection(target).get(keyFor(target));
    if (found === undefined)
      throw new Refused(404, 'NotFound', `${target.plural} "${target.name}" not found`);
    return found;
  }

  #insert(target: Target, given: KubeObject, owners: Ownership): KubeObject {
    const namespace = target.namespace === undefined ? {} : { namespace: target.namespace };
    const generation = ungenerated.has(target.plural) ? {} : { generation: 1 };
    const metadata = { ...given.metadata, ...namespace, ...generation, uid: randomUUID() };
    const object = this.#stamped({ ...given, metadata: { ...metadata, ...managed(owners) } });
    this.#collection(target).set(keyFor(target), { object, owners });
    this.#tell(target, 'ADDED', object);
    return object;
  }

  /** A write that changes nothing gives no new version; one that changes more than metadata and status counts. */
  #store(target: Target, kept: Kept, next: KubeObject): KubeObject {
    const { uid, generation, resourceVersion, namespace } = kept.object.metadata;
    const own = Object.entries({ uid, generation, resourceVersion, namespace }).filter(
      (each) => each[1] !== undefined,
    );
    const metadata = { ...next.metadata, ...Object.fromEntries(own), ...managed(kept.owners) };
    const same = { ...next, metadata };
    if (canonicalText(same) === canonicalText(kept.object)) return kept.object;
    const content = (object: KubeObject) => canonicalText({ ...object, metadata: 0, status: 0 });
    const isNew = generation !== undefined && content(next) !== content(kept.object);
    const counted = isNew ? { ...metadata, generation: generation + 1 } : metadata;
    kept.object = this.#stamped({ ...next, metadata: counted });
    const { finalizers = [], deletionTimestamp } = kept.object.metadata;
    if (deletionTimestamp !== undefined && finalizers.length === 0) {
      this.#collection(target).delete(keyFor(target));
      this.#tell(target, 'DELETED', kept.object);
    } else {
      this.#tell(target, 'MODIFIED', kept.object);
    }
    return kept.object;
  }

  #stamped(object: KubeObject): KubeObject {
    this.#version += 1;
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
  }

  #tell(target: Target, type: Happening['type'], object: KubeObject): void {
    this.writes += 1;
    const collection = ClusterState.collectionOf(target);
    const happening = { version: this.#version, collection, type, object };
    this.#history.push(happening);
    for (const watcher of [...this.#watchers]) watcher(happening);
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

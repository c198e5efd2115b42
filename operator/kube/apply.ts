import { AppError } from '#core/errors/errors.ts';
import type { Api } from './api.ts';
import { canonicalText, contains, hashOf } from './compare.ts';
import { AdoptionRefused, isApiError } from './errors.ts';
import { Fights, rivalsOf } from './ownership-conflicts.ts';
import {
  controllerOf,
  isEarlier,
  type KubeObject,
  keyOf,
  type OwnerReference,
  parseObject,
  type Resource,
  withoutBookkeeping,
} from './resource.ts';
import type { Cache } from './store.ts';
import type { Timing } from './time.ts';

const APPLY_PATCH = 'application/apply-patch+yaml';
const MANAGED_BY = 'app.kubernetes.io/managed-by';

export interface ApplierOptions {
  readonly api: Api;
  readonly timing: Timing;
  /** Field manager: `chancery-<controller>`. */
  readonly manager: string;
  /** Annotation of a child that keeps the hash of what was applied, so that a restart costs no write. */
  readonly hashAnnotation: string;
  /** Synced cache of a resource; children of other resources are asked for each time. */
  readonly cacheOf: (resource: Resource) => Cache | undefined;
}

/** An object as the operator wants it. */
export interface Child {
  readonly resource: Resource;
  readonly object: KubeObject;
}

export type Applied =
  | { readonly action: 'created' | 'configured' }
  /** Behind: the cache does not have our last write yet. */
  | { readonly action: 'unchanged'; readonly isBehind: boolean }
  /**
   * Somebody else keeps changing what we set: we write at most six times a minute and say who it is, until nothing was
   * changed for half a minute.
   */
  | { readonly action: 'throttled'; readonly rivals: readonly string[] };

/** What is known of a child since it was last found to be as wanted. */
interface Memory {
  readonly hash: string;
  readonly fingerprint: string;
  readonly resourceVersion: string | undefined;
}

/** Identity of a child within its owner. */
export function childId({ resource, object }: Child): string {
  return `${resource.group}/${resource.kind}/${keyOf(object.metadata)}`;
}

/**
 * Server-side apply for the children of an object. A child that is as wanted costs no call: after an apply its
 * generation (its version, for kinds without one) and its metadata tell; after a restart the annotation does, together
 * with a look at every field that is wanted.
 */
export class Applier {
  readonly #options: ApplierOptions;
  /** By uid of the owner and id of the child. */
  readonly #memories = new Map<string, Map<string, Memory>>();
  readonly #fights: Fights;

  constructor(options: ApplierOptions) {
    this.#options = options;
    this.#fights = new Fights(options.timing);
  }

  /**
   * Makes one child as wanted. Foreign fields stay.
   * @throws AdoptionRefused when an object of that name is not ours; AppError conflict CHILD_TERMINATING while a former
   * one goes away; ApiError, NotLeader
   */
  async apply(owner: KubeObject, child: Child, signal?: AbortSignal): Promise<Applied> {
    const hash = hashOf(child.object);
    const wanted = dress(child.object, owner, { [this.#options.hashAnnotation]: hash });
    const id = childId(child);
    const ownerUid = owner.metadata.uid ?? '';
    const name = `${ownerUid}/${id}`;
    const memory = this.#memories.get(ownerUid)?.get(id);
    let live = await this.#find(child, signal);
    if (live === undefined) return this.#write(child, wanted, { owner, hash, live, signal });
    judgeOwnership(live, owner, wanted);
    const isBehind = isEarlier(live.metadata.resourceVersion, memory?.resourceVersion);
    const isKnown = memory?.hash === hash && (isBehind || memory.fingerprint === fingerprintOf(live));
    if (isKnown) return this.#judged(name, { action: 'unchanged', isBehind });
    // a cache of metadata cannot tell what the content is
    if (isBare(live) && !isBare(wanted)) live = (await this.#get(child, signal)) ?? live;
    if (isAsWanted(live, wanted)) {
      this.#remember(ownerUid, id, hash, live);
      return this.#judged(name, { action: 'unchanged', isBehind: false });
    }
    // the same was applied before: somebody has changed it since
    if (memory?.hash !== hash) this.#fights.forget(name);
    else if (!this.#fights.mayAnswer(name)) {
      const rivals = this.#fights.rivals(name) ?? (await this.#rivals(child, wanted, signal));
      this.#fights.open(name, rivals);
      return { action: 'throttled', rivals };
    }
    return this.#judged(name, await this.#write(child, wanted, { owner, hash, live, signal }));
  }

  /** An answer does not end a fight. */
  #judged(name: string, applied: Applied): Applied {
    const rivals = this.#fights.rivals(name);
    return rivals === undefined ? applied : { action: 'throttled', rivals };
  }

  /** Forgets the children of an owner that is gone. */
  forget(ownerUid: string): void {
    for (const id of this.#memories.get(ownerUid)?.keys() ?? []) this.#fights.forget(`${ownerUid}/${id}`);
    this.#memories.delete(ownerUid);
  }

  async #find(child: Child, signal: AbortSignal | undefined): Promise<KubeObject | undefined> {
    const cached = this.#options.cacheOf(child.resource)?.find(keyOf(child.object.metadata));
    // a cache that selects by label does not see what a stranger made; one look before we create something
    return cached ?? this.#get(child, signal);
  }

  async #get({ resource, object }: Child, signal: AbortSignal | undefined): Promise<KubeObject | undefined> {
    const { namespace, name } = object.metadata;
    try {
      return parseObject(await this.#options.api.call({ verb: 'get', resource, namespace, name, signal }));
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  async #write(
    { resource, object }: Child,
    wanted: KubeObject,
    of: { owner: KubeObject; hash: string; live: KubeObject | undefined; signal: AbortSignal | undefined },
  ): Promise<Applied> {
    const { namespace, name } = object.metadata;
    const uid = of.live?.metadata.uid;
    // with its uid the object that was judged is changed, or none
    const body = uid === undefined ? wanted : { ...wanted, metadata: { ...wanted.metadata, uid } };
    const answer = await this.#options.api.call({
      verb: 'patch',
      resource,
      namespace,
      name,
      query: { fieldManager: this.#options.manager, force: 'true' },
      contentType: APPLY_PATCH,
      body,
      signal: of.signal,
    });
    const stored = withoutBookkeeping(parseObject(answer));
    this.#remember(of.owner.metadata.uid ?? '', childId({ resource, object }), of.hash, stored);
    return { action: of.live === undefined ? 'created' : 'configured' };
  }

  #remember(ownerUid: string, id: string, hash: string, live: KubeObject): void {
    const children = this.#memories.get(ownerUid) ?? new Map<string, Memory>();
    const { resourceVersion } = live.metadata;
    this.#memories.set(
      ownerUid,
      children.set(id, { hash, fingerprint: fingerprintOf(live), resourceVersion }),
    );
  }

  async #rivals(
    child: Child,
    wanted: KubeObject,
    signal: AbortSignal | undefined,
  ): Promise<readonly string[]> {
    const live = await this.#get(child, signal);
    return live === undefined ? [] : rivalsOf(live, wanted, this.#options.manager);
  }
}

/** The reference that makes `owner` the controller of a child. */
export function referenceTo({ apiVersion, kind, metadata }: KubeObject): OwnerReference {
  const { name, uid = '' } = metadata;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

function dress(
  object: KubeObject,
  owner: KubeObject,
  annotations: Readonly<Record<string, string>>,
): KubeObject {
  const metadata = {
    ...object.metadata,
    annotations: { ...object.metadata.annotations, ...annotations },
    ownerReferences: [referenceTo(owner)],
  };
  return { ...object, metadata };
}

/**
 * Whether a live object may be written as a child of `owner`. An object without a controller is an orphan, which is
 * adopted when it carries our managed-by label; so is one of a former owner of the same name.
 * @throws AdoptionRefused; AppError conflict CHILD_TERMINATING
 */
function judgeOwnership(live: KubeObject, owner: KubeObject, wanted: KubeObject): void {
  const name = `${live.kind} ${keyOf(live.metadata)}`;
  const controller = controllerOf(live);
  const isOurs = controller?.uid === owner.metadata.uid && controller !== undefined;
  if (!isOurs && !isOrphan(live, controller, owner, wanted)) {
    throw new AdoptionRefused(
      name,
      controller === undefined ? 'nobody' : `${controller.kind} ${controller.name}`,
    );
  }
  if (live.metadata.deletionTimestamp !== undefined) {
    throw new AppError('conflict', 'CHILD_TERMINATING', `${name} is being deleted`);
  }
}

function isOrphan(
  live: KubeObject,
  controller: OwnerReference | undefined,
  owner: KubeObject,
  wanted: KubeObject,
): boolean {
  if (controller !== undefined) {
    const isFormer = controller.kind === owner.kind && controller.name === owner.metadata.name;
    return isFormer && groupOf(controller.apiVersion) === groupOf(owner.apiVersion);
  }
  const label = wanted.metadata.labels?.[MANAGED_BY];
  return label !== undefined && live.metadata.labels?.[MANAGED_BY] === label;
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}

/** Nothing but its metadata. */
function isBare(object: KubeObject): boolean {
  return Object.keys(object).every((member) => ['apiVersion', 'kind', 'metadata'].includes(member));
}

/** Changes whenever somebody changed the object in a way that matters; not with its status. */
function fingerprintOf({ metadata }: KubeObject): string {
  const { uid, generation, resourceVersion, labels, annotations, ownerReferences, finalizers } = metadata;
  const version = generation === undefined || generation === 0 ? `v${resourceVersion}` : `g${generation}`;
  return `${uid} ${version} ${hashOf({ labels, annotations, ownerReferences, finalizers })}`;
}

/** Whether the last apply had this very content (its annotation says so) and every field of it still stands. */
function isAsWanted(live: KubeObject, wanted: KubeObject): boolean {
  const { metadata, ...content } = wanted;
  const { labels, annotations, ownerReferences = [] } = metadata;
  const references = live.metadata.ownerReferences ?? [];
  return (
    contains(live.metadata.labels ?? {}, labels ?? {}) &&
    contains(live.metadata.annotations ?? {}, annotations ?? {}) &&
    ownerReferences.every((each) =>
      references.some((other) => canonicalText(other) === canonicalText(each)),
    ) &&
    contains(live, content)
  );
}

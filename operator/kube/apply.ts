import type { Timing } from '#kit/clock/timing.ts';
import { operatorError } from '../errors.ts';
import type { Api } from './api.ts';
import { canonicalText, contains, hashOf } from './compare.ts';
import { AdoptionRefused, isApiError } from './errors.ts';
import { findCompetingManagers, OwnershipConflicts } from './ownership-conflicts.ts';
import {
  controllerOf,
  isEarlier,
  type KubeObject,
  keyOf,
  type OwnerReference,
  parseObject,
  type Resource,
  withoutManagedFields,
} from './resource.ts';
import type { Cache } from './store.ts';

const APPLY_PATCH = 'application/apply-patch+yaml';
const MANAGED_BY = 'app.kubernetes.io/managed-by';

interface ApplierOptions {
  readonly api: Api;
  readonly timing: Timing;
  /** Field manager: `chancery-<controller>`. */
  readonly manager: string;
  /** Annotation of a child with the hash of the applied object, so that a restart causes no write. */
  readonly hashAnnotation: string;
  /** Synced cache of a resource; children without a cache are read each time. */
  readonly cacheOf: (resource: Resource) => Cache | undefined;
}

/** A desired child object. */
export interface Child {
  readonly resource: Resource;
  readonly object: KubeObject;
}

export type ApplyResult =
  | { readonly action: 'created' | 'configured' }
  /** `isBehind`: the cache does not have our last write yet. */
  | { readonly action: 'unchanged'; readonly isBehind: boolean }
  /**
   * Another field manager keeps changing our fields. They are overwritten at most six times per minute, until there was no
   * conflicting change for 30 s.
   */
  | { readonly action: 'throttled'; readonly competingManagers: readonly string[] };

/** State of a child when it last matched the desired object. */
interface AppliedState {
  readonly hash: string;
  readonly fingerprint: string;
  readonly resourceVersion: string | undefined;
}

/** Identity of a child within its owner. */
export function childId({ resource, object }: Child): string {
  return `${resource.group}/${resource.kind}/${keyOf(object.metadata)}`;
}

/**
 * Server-side apply for the children of an object. A child that is up to date costs no call. After an apply this is judged
 * by its generation (its resource version, for kinds without one) and metadata; after a restart by the hash annotation
 * and a comparison of every desired field.
 */
export class Applier {
  readonly #options: ApplierOptions;
  /** By uid of the owner and id of the child. */
  readonly #states = new Map<string, Map<string, AppliedState>>();
  readonly #conflicts: OwnershipConflicts;

  constructor(options: ApplierOptions) {
    this.#options = options;
    this.#conflicts = new OwnershipConflicts(options.timing);
  }

  /**
   * Applies one child. Fields of other managers stay.
   * @throws AdoptionRefused when an object of that name belongs to another owner; AppError conflict CHILD_TERMINATING while
   * an earlier object is being deleted; ApiError, NotLeader
   */
  async apply(owner: KubeObject, child: Child, signal?: AbortSignal): Promise<ApplyResult> {
    const hash = hashOf(child.object);
    const desired = withOwnership(child.object, owner, { [this.#options.hashAnnotation]: hash });
    const id = childId(child);
    const ownerUid = owner.metadata.uid ?? '';
    const name = `${ownerUid}/${id}`;
    const memory = this.#states.get(ownerUid)?.get(id);
    let live = await this.#find(child, signal);
    if (live === undefined) return this.#write(child, desired, { owner, hash, live, signal });
    verifyOwnership(live, owner, desired);
    const isBehind = isEarlier(live.metadata.resourceVersion, memory?.resourceVersion);
    const isKnown = memory?.hash === hash && (isBehind || memory.fingerprint === fingerprintOf(live));
    if (isKnown) return this.#withConflict(name, { action: 'unchanged', isBehind });
    // a metadata-only cache does not have the content
    if (hasMetadataOnly(live) && !hasMetadataOnly(desired)) live = (await this.#get(child, signal)) ?? live;
    if (isUpToDate(live, desired)) {
      this.#remember(ownerUid, id, hash, live);
      return this.#withConflict(name, { action: 'unchanged', isBehind: false });
    }
    // the same object was applied before, so another manager has changed it since
    if (memory?.hash !== hash) this.#conflicts.forget(name);
    else if (!this.#conflicts.mayOverwrite(name)) {
      const competingManagers =
        this.#conflicts.competingManagers(name) ??
        (await this.#findCompetingManagers(child, desired, signal));
      this.#conflicts.open(name, competingManagers);
      return { action: 'throttled', competingManagers };
    }
    return this.#withConflict(name, await this.#write(child, desired, { owner, hash, live, signal }));
  }

  /** An overwrite does not end a conflict: the result stays `throttled` until the quiet period has passed. */
  #withConflict(name: string, applied: ApplyResult): ApplyResult {
    const competingManagers = this.#conflicts.competingManagers(name);
    return competingManagers === undefined ? applied : { action: 'throttled', competingManagers };
  }

  /** Forgets the children of a deleted owner. */
  forget(ownerUid: string): void {
    for (const id of this.#states.get(ownerUid)?.keys() ?? []) this.#conflicts.forget(`${ownerUid}/${id}`);
    this.#states.delete(ownerUid);
  }

  async #find(child: Child, signal: AbortSignal | undefined): Promise<KubeObject | undefined> {
    const cached = this.#options.cacheOf(child.resource)?.find(keyOf(child.object.metadata));
    // a cache with a label selector does not contain foreign objects, so the name is read before a creation
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
    desired: KubeObject,
    of: { owner: KubeObject; hash: string; live: KubeObject | undefined; signal: AbortSignal | undefined },
  ): Promise<ApplyResult> {
    const { namespace, name } = object.metadata;
    const uid = of.live?.metadata.uid;
    // the uid makes the write fail if the object was replaced since the check
    const body = uid === undefined ? desired : { ...desired, metadata: { ...desired.metadata, uid } };
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
    const stored = withoutManagedFields(parseObject(answer));
    this.#remember(of.owner.metadata.uid ?? '', childId({ resource, object }), of.hash, stored);
    return { action: of.live === undefined ? 'created' : 'configured' };
  }

  #remember(ownerUid: string, id: string, hash: string, live: KubeObject): void {
    const children = this.#states.get(ownerUid) ?? new Map<string, AppliedState>();
    const { resourceVersion } = live.metadata;
    this.#states.set(ownerUid, children.set(id, { hash, fingerprint: fingerprintOf(live), resourceVersion }));
  }

  async #findCompetingManagers(
    child: Child,
    desired: KubeObject,
    signal: AbortSignal | undefined,
  ): Promise<readonly string[]> {
    const live = await this.#get(child, signal);
    return live === undefined ? [] : findCompetingManagers(live, desired, this.#options.manager);
  }
}

/** The owner reference that makes `owner` the controller of a child. */
function referenceTo({ apiVersion, kind, metadata }: KubeObject): OwnerReference {
  const { name, uid = '' } = metadata;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

function withOwnership(
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
 * Verifies that a live object may be written as a child of `owner`. An object without a controller is adopted if it has our
 * managed-by label; so is a child of an earlier owner of the same name.
 * @throws AdoptionRefused; AppError conflict CHILD_TERMINATING
 */
function verifyOwnership(live: KubeObject, owner: KubeObject, desired: KubeObject): void {
  const name = `${live.kind} ${keyOf(live.metadata)}`;
  const controller = controllerOf(live);
  const isOurs = controller?.uid === owner.metadata.uid && controller !== undefined;
  if (!isOurs && !isOrphan(live, controller, owner, desired)) {
    throw new AdoptionRefused(
      name,
      controller === undefined ? undefined : `${controller.kind} ${controller.name}`,
    );
  }
  if (live.metadata.deletionTimestamp !== undefined) {
    throw operatorError('CHILD_TERMINATING', `${name} is being deleted`);
  }
}

function isOrphan(
  live: KubeObject,
  controller: OwnerReference | undefined,
  owner: KubeObject,
  desired: KubeObject,
): boolean {
  if (controller !== undefined) {
    const isFormer = controller.kind === owner.kind && controller.name === owner.metadata.name;
    return isFormer && groupOf(controller.apiVersion) === groupOf(owner.apiVersion);
  }
  const label = desired.metadata.labels?.[MANAGED_BY];
  return label !== undefined && live.metadata.labels?.[MANAGED_BY] === label;
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}

/** Whether an object has metadata only. */
function hasMetadataOnly(object: KubeObject): boolean {
  return Object.keys(object).every((member) => ['apiVersion', 'kind', 'metadata'].includes(member));
}

/** Changes with every relevant change of the object, but not with its status. */
function fingerprintOf({ metadata }: KubeObject): string {
  const { uid, generation, resourceVersion, labels, annotations, ownerReferences, finalizers } = metadata;
  const version = generation === undefined || generation === 0 ? `v${resourceVersion}` : `g${generation}`;
  return `${uid} ${version} ${hashOf({ labels, annotations, ownerReferences, finalizers })}`;
}

/** Whether the hash annotation and every desired field are in the live object. */
function isUpToDate(live: KubeObject, desired: KubeObject): boolean {
  const { metadata, ...content } = desired;
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

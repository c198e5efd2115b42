import type { Api } from './api.ts';
import { childId } from './apply.ts';
import { isApiError } from './errors.ts';
import { controllerOf, type KubeObject, type Resource } from './resource.ts';
import { type Cache, ownerIndex } from './store.ts';

interface PruneOptions {
  readonly api: Api;
  /** Uid of the owner of the children. */
  readonly ownerUid: string;
  /** Every resource of which the owner may have children, with its synced cache (index `ownerIndex`). */
  readonly caches: readonly { readonly resource: Resource; readonly cache: Cache }[];
  /** Ids (`childId`) of the desired children. */
  readonly desiredIds: ReadonlySet<string>;
  /** Label whose value `true` protects an object from pruning. */
  readonly retainLabel: string;
  readonly signal?: AbortSignal;
}

/**
 * Deletes children that are no longer desired. Volume claims and objects with the retain label are never deleted.
 * @returns ids of the deleted children
 */
export async function prune(options: PruneOptions): Promise<readonly string[]> {
  const { api, ownerUid, desiredIds, retainLabel, signal } = options;
  const deleted: string[] = [];
  for (const { resource, cache } of options.caches) {
    for (const object of cache.findBy(ownerIndex, ownerUid)) {
      const id = childId({ resource, object });
      if (desiredIds.has(id) || !isPrunable(object, ownerUid, retainLabel)) continue;
      const { namespace, name, uid } = object.metadata;
      const body = { preconditions: { uid }, propagationPolicy: 'Background' };
      try {
        await api.call({ verb: 'delete', resource, namespace, name, body, signal });
        deleted.push(id);
      } catch (error) {
        // already deleted, or replaced by another object of that name
        if (!isApiError(error, 'NotFound', 'Conflict')) throw error;
      }
    }
  }
  return deleted;
}

function isPrunable(object: KubeObject, ownerUid: string, retainLabel: string): boolean {
  const { deletionTimestamp, labels } = object.metadata;
  return (
    controllerOf(object)?.uid === ownerUid &&
    deletionTimestamp === undefined &&
    object.kind !== 'PersistentVolumeClaim' &&
    labels?.[retainLabel] !== 'true'
  );
}

import type { Api } from './api.ts';
import { childId } from './apply.ts';
import { isApiError } from './errors.ts';
import { controllerOf, type KubeObject, type Resource } from './resource.ts';
import { type Cache, ownerIndex } from './store.ts';

export interface PruneOptions {
  readonly api: Api;
  /** Uid of the object whose children are looked at. */
  readonly ownerUid: string;
  /** Every resource that the owner may have children of, with its synced cache (index `ownerIndex`). */
  readonly caches: readonly { readonly resource: Resource; readonly cache: Cache }[];
  /** Ids (`childId`) of the children that are wanted. */
  readonly wanted: ReadonlySet<string>;
  /** Label whose value `true` keeps an object for good. */
  readonly retainLabel: string;
  readonly signal?: AbortSignal;
}

/**
 * Deletes what an owner controls and nothing renders any more. Volume claims and what carries the label stay.
 * @returns ids of what was deleted
 */
export async function prune(options: PruneOptions): Promise<readonly string[]> {
  const { api, ownerUid, wanted, retainLabel, signal } = options;
  const deleted: string[] = [];
  for (const { resource, cache } of options.caches) {
    for (const object of cache.findBy(ownerIndex, ownerUid)) {
      const id = childId({ resource, object });
      if (wanted.has(id) || !isPrunable(object, ownerUid, retainLabel)) continue;
      const { namespace, name, uid } = object.metadata;
      const body = { preconditions: { uid }, propagationPolicy: 'Background' };
      try {
        await api.call({ verb: 'delete', resource, namespace, name, body, signal });
        deleted.push(id);
      } catch (error) {
        // gone already, or another object by now
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

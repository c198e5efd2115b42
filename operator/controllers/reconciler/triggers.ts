import { hashOf } from '../../kube/compare.ts';
import { priority, type WorkQueue } from '../../kube/queue.ts';
import { apiVersionOf, controllerOf, type KubeObject, keyOf } from '../../kube/resource.ts';
import type { Change } from '../../kube/store.ts';
import type { Dependencies } from './dependencies.ts';
import type { KindHandler, ManagedResource } from './kind.ts';

/** Hash of the parts of an object that people change; the status is not included. */
function intentOf({ metadata }: KubeObject): string {
  const { uid, generation, labels, annotations, finalizers, deletionTimestamp } = metadata;
  return hashOf({ uid, generation, labels, annotations, finalizers, deletionTimestamp });
}

/**
 * Queues reconciles of a kind after changes of its objects, their children, the availability of child kinds, the
 * installation and related resources. Returns a function that unsubscribes.
 */
export function subscribeTriggers<R extends ManagedResource>(
  { caches, installations }: Dependencies,
  kind: KindHandler<R>,
  queue: WorkQueue,
  forget: (uid: string) => void,
): () => void {
  const own = caches.of(kind.resource);
  let isListed = false;
  void caches.synced(kind.resource).then(() => {
    isListed = true;
  });
  const onOwn = ({ type, key, object, before }: Change) => {
    if (type === 'deleted') forget(object.metadata.uid ?? '');
    else if (type === 'added') queue.add(key, isListed ? priority.normal : priority.background);
    else if (before === undefined || intentOf(before) !== intentOf(object)) queue.add(key, priority.edit);
  };
  const apiVersion = apiVersionOf(kind.resource);
  const onChild = ({ object }: Change) => {
    const owner = controllerOf(object);
    if (owner?.kind !== kind.kind || owner.apiVersion !== apiVersion) return;
    queue.add(keyOf({ ...object.metadata, name: owner.name }));
  };
  const addAll = (namespace?: string) => {
    for (const { metadata } of own.list()) {
      if (namespace === undefined || metadata.namespace === namespace)
        queue.add(keyOf(metadata), priority.background);
    }
  };
  const ends = [
    own.subscribe(onOwn),
    ...kind.children.map((resource) => caches.of(resource).subscribe(onChild)),
    ...kind.children.map((resource) => caches.onServed(resource, addAll)),
    ...(kind.relatedResources ?? []).map(({ resource, keysOf }) =>
      caches.of(resource).subscribe((change) => {
        for (const key of keysOf(change)) queue.add(key);
      }),
    ),
    installations.subscribe(addAll),
  ];
  return () => {
    for (const end of ends) end();
  };
}

import { hashOf } from '../../kube/compare.ts';
import { priority, type WorkQueue } from '../../kube/queue.ts';
import { apiVersionOf, controllerOf, type KubeObject, keyOf } from '../../kube/resource.ts';
import type { Change } from '../../kube/store.ts';
import type { Parts } from './dependencies.ts';
import type { Kind, Managed } from './kind.ts';

/** What people say in an object; not what its status says. */
function intentOf({ metadata }: KubeObject): string {
  const { uid, generation, labels, annotations, finalizers, deletionTimestamp } = metadata;
  return hashOf({ uid, generation, labels, annotations, finalizers, deletionTimestamp });
}

/**
 * Lets changes in the cluster put keys into the queue of a kind: of its objects, of their children, of the
 * kinds that children may be of, of the installation, and of whatever else it names. Returns the function that ends it.
 */
export function wire<R extends Managed>(
  { caches, installations }: Parts,
  kind: Kind<R>,
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
    ...(kind.wakes ?? []).map(({ resource, keysOf }) =>
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

import { annotations, FINALIZER, forceDeletion, type ManagedKind } from '../../api/names.ts';
import type { ObjectMetadata } from '../../api/object.ts';

/** An object whose namespace goes while its operator runs in it. */
export interface ObjectOfDeletedNamespace {
  readonly kind: ManagedKind;
  readonly metadata: Pick<ObjectMetadata, 'name' | 'namespace' | 'uid' | 'annotations' | 'finalizers'>;
  /** Undefined for a kind without one. */
  readonly deletionPolicy: string | undefined;
}

/** `go`: its finalizer is taken away. `stay`: somebody has to know something first. */
export type NamespaceDeletionPlan =
  | { readonly action: 'none' }
  | { readonly action: 'go' }
  | { readonly action: 'stay'; readonly message: string };

/** What a policy removes from the database of a service, which may outlive the namespace. */
const removals: Readonly<Record<string, string>> = {
  Delete: 'the organisation',
  Tombstone: 'the register',
  Purge: 'the register',
};

/**
 * Whether an object may go with its namespace. The services go with it too, so nothing outside can be ended any more:
 * what keeps its data goes, what was to lose it stays and tells a person so.
 */
export function planNamespaceDeletion({
  kind,
  metadata,
  deletionPolicy = '',
}: ObjectOfDeletedNamespace): NamespaceDeletionPlan {
  if (!metadata.finalizers.includes(FINALIZER)) return { action: 'none' };
  const kept = removals[deletionPolicy];
  if (kept === undefined || forceDeletion(metadata) === 'yes') return { action: 'go' };
  const object = `${kind.toLowerCase()}/${metadata.name} -n ${metadata.namespace}`;
  const message = [
    `The namespace is being deleted, and the services with it: ${kept} that deletionPolicy ${deletionPolicy} was to remove stays in its database.`,
    `To let this object go: kubectl annotate --overwrite ${object} ${annotations.forceDelete}=${metadata.uid}`,
    `and then: kubectl patch ${object} --type=merge -p '{"metadata":{"finalizers":null}}'`,
  ].join(' ');
  return { action: 'stay', message };
}

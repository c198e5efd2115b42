import { annotations, FINALIZER, forceDeletion, type ManagedKind } from '../../api/names.ts';
import type { ObjectMetadata } from '../../api/object.ts';

/** An object in a namespace that is being deleted together with its operator. */
export interface ObjectOfDeletedNamespace {
  readonly kind: ManagedKind;
  readonly metadata: Pick<ObjectMetadata, 'name' | 'namespace' | 'uid' | 'annotations' | 'finalizers'>;
  /** Undefined for a kind without one. */
  readonly deletionPolicy: string | undefined;
}

/** `release`: the finalizer is removed. `keep`: a person must decide first. */
type NamespaceDeletionPlan =
  | { readonly action: 'none' }
  | { readonly action: 'release' }
  | { readonly action: 'keep'; readonly message: string };

/** What a deletion policy removes from the database of a service, which may outlive the namespace. */
const removals: Readonly<Record<string, string>> = {
  Delete: 'the organisation',
  Tombstone: 'the register',
  Purge: 'the register',
};

/**
 * Whether an object may be deleted with its namespace. The services are deleted too, so no cleanup is possible any more.
 * Objects that keep their data are released. Objects whose data was to be removed stay, with a message for a person.
 */
export function planNamespaceDeletion({
  kind,
  metadata,
  deletionPolicy = '',
}: ObjectOfDeletedNamespace): NamespaceDeletionPlan {
  if (!metadata.finalizers.includes(FINALIZER)) return { action: 'none' };
  const keptData = removals[deletionPolicy];
  if (keptData === undefined || forceDeletion(metadata) === 'yes') return { action: 'release' };
  const object = `${kind.toLowerCase()}/${metadata.name} -n ${metadata.namespace}`;
  const message = [
    `The namespace is being deleted with its services, so ${keptData} that deletionPolicy ${deletionPolicy} should remove stays in its database.`,
    `To delete this object anyway: kubectl annotate --overwrite ${object} ${annotations.forceDelete}=${metadata.uid}`,
    `and then: kubectl patch ${object} --type=merge -p '{"metadata":{"finalizers":null}}'`,
  ].join(' ');
  return { action: 'keep', message };
}

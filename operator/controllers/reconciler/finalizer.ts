import { FINALIZER } from '../../api/names.ts';
import type { Api } from '../../kube/api.ts';
import { isApiError } from '../../kube/errors.ts';
import type { KubeObject, Resource } from '../../kube/resource.ts';

async function patchFinalizers(
  api: Api,
  resource: Resource,
  { metadata }: KubeObject,
  of: { readonly finalizers: readonly string[]; readonly signal: AbortSignal },
): Promise<void> {
  const { name, namespace, resourceVersion, uid } = metadata;
  await api.call({
    verb: 'patch',
    resource,
    namespace,
    name,
    contentType: 'application/merge-patch+json',
    // the resource version prevents the loss of a concurrently added finalizer
    body: { metadata: { uid, resourceVersion, finalizers: of.finalizers } },
    signal: of.signal,
  });
}

/** Adds the finalizer. Throws ApiError, NotLeader; Conflict when the cache is stale. */
export async function addFinalizer(
  api: Api,
  resource: Resource,
  object: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = [...(object.metadata.finalizers ?? []), FINALIZER];
  await patchFinalizers(api, resource, object, { finalizers, signal });
}

/** Removes the finalizer; a deleted object is not an error. Throws like addFinalizer. */
export async function removeFinalizer(
  api: Api,
  resource: Resource,
  object: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = (object.metadata.finalizers ?? []).filter((each) => each !== FINALIZER);
  try {
    await patchFinalizers(api, resource, object, { finalizers, signal });
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
  }
}

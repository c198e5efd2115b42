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
    // with its version: somebody else's finalizer is never lost
    body: { metadata: { uid, resourceVersion, finalizers: of.finalizers } },
    signal: of.signal,
  });
}

/** Holds an object until its cleanup is done. Throws ApiError, NotLeader; Conflict when the cache is behind. */
export async function addFinalizer(
  api: Api,
  resource: Resource,
  object: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = [...(object.metadata.finalizers ?? []), FINALIZER];
  await patchFinalizers(api, resource, object, { finalizers, signal });
}

/** Lets an object go. One that is gone already is fine. Throws like addFinalizer. */
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

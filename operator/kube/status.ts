import type { Api } from './api.ts';
import { canonicalText } from './compare.ts';
import { isEarlier, type KubeObject, parseObject, type Resource } from './resource.ts';

interface WrittenStatus {
  /** Status that was applied by this writer. */
  readonly applied: string;
  /** Status afterwards, with the fields of other managers. */
  readonly stored: string;
  readonly status: unknown;
  readonly resourceVersion: string | undefined;
}

interface StatusWriterOptions {
  readonly api: Api;
  readonly resource: Resource;
  /** A separate field manager, so that status and children do not own each other's fields. */
  readonly manager: string;
}

/** Writes the status of objects, once per reconcile and only when it has changed. */
export class StatusWriter {
  readonly #options: StatusWriterOptions;
  readonly #written = new Map<string, WrittenStatus>();

  constructor(options: StatusWriterOptions) {
    this.#options = options;
  }

  /**
   * @param object the object from the cache
   * @param status the complete status of this manager; members that it applied before and omits now are removed
   * @returns whether a call was made
   * @throws ApiError, NotLeader
   */
  async write(object: KubeObject, status: unknown, signal?: AbortSignal): Promise<boolean> {
    const { api, resource, manager } = this.#options;
    const { name, namespace, uid = '', resourceVersion } = object.metadata;
    const applied = canonicalText(status);
    const live = canonicalText(object['status']);
    if (live === applied) return false;
    const before = this.#written.get(uid);
    const isCurrent = before?.stored === live || isEarlier(resourceVersion, before?.resourceVersion);
    if (before?.applied === applied && isCurrent) return false;
    const answer = await api.call({
      verb: 'patch',
      resource,
      namespace,
      name,
      subresource: 'status',
      query: { fieldManager: manager, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        metadata: { name, namespace, uid: object.metadata.uid },
        status,
      },
      signal,
    });
    const stored = parseObject(answer);
    this.#written.set(uid, {
      applied,
      stored: canonicalText(stored['status']),
      status: stored['status'],
      resourceVersion: stored.metadata.resourceVersion,
    });
    return true;
  }

  /** The status that was written last, which the cache may not have yet. */
  latest({ metadata, ...object }: KubeObject): unknown {
    const written = this.#written.get(metadata.uid ?? '');
    return isEarlier(metadata.resourceVersion, written?.resourceVersion) ? written?.status : object['status'];
  }

  /** Forgets a deleted object. */
  forget(uid: string): void {
    this.#written.delete(uid);
  }
}

import type { Api } from './api.ts';
import { canonicalText } from './compare.ts';
import { isEarlier, type KubeObject, parseObject, type Resource } from './resource.ts';

interface Written {
  /** What we said. */
  readonly said: string;
  /** What stood there afterwards, with what others had said. */
  readonly stored: string;
  readonly status: unknown;
  readonly resourceVersion: string | undefined;
}

export interface StatusWriterOptions {
  readonly api: Api;
  readonly resource: Resource;
  /** A field manager of its own, so that status and children never take fields from each other. */
  readonly manager: string;
}

/** Writes the status of objects, once at the end of a reconcile and only when it says something new. */
export class StatusWriter {
  readonly #options: StatusWriterOptions;
  readonly #written = new Map<string, Written>();

  constructor(options: StatusWriterOptions) {
    this.#options = options;
  }

  /**
   * @param object the object from the cache
   * @param status all that we say about it; a member that we said before and leave out now is removed
   * @returns whether a call was made
   * @throws ApiError, NotLeader
   */
  async write(object: KubeObject, status: unknown, signal?: AbortSignal): Promise<boolean> {
    const { api, resource, manager } = this.#options;
    const { name, namespace, uid = '', resourceVersion } = object.metadata;
    const said = canonicalText(status);
    const live = canonicalText(object['status']);
    if (live === said) return false;
    const before = this.#written.get(uid);
    const isCurrent = before?.stored === live || isEarlier(resourceVersion, before?.resourceVersion);
    if (before?.said === said && isCurrent) return false;
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
      said,
      stored: canonicalText(stored['status']),
      status: stored['status'],
      resourceVersion: stored.metadata.resourceVersion,
    });
    return true;
  }

  /** The status of an object as it was written last, which a cache may not have seen yet. */
  latest({ metadata, ...object }: KubeObject): unknown {
    const written = this.#written.get(metadata.uid ?? '');
    return isEarlier(metadata.resourceVersion, written?.resourceVersion) ? written?.status : object['status'];
  }

  /** Forgets an object that is gone. */
  forget(uid: string): void {
    this.#written.delete(uid);
  }
}

import { operatorError } from '../errors.ts';
import type { Api } from './api.ts';
import { isApiError } from './errors.ts';
import { isRecord, type KubeObject, parseObject, type Resource } from './resource.ts';

const PAGE = '500';
const PARTIAL = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';

/** Selects the objects of a list or watch. */
export interface Selection {
  readonly resource: Resource;
  /** Every namespace when absent. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  /** Fetches and stores only `metadata`, so that contents such as Secrets stay out of memory. */
  readonly metadataOnly?: boolean | undefined;
}

interface ObjectList {
  readonly objects: readonly KubeObject[];
  /** Resource version from which a watch continues. */
  readonly resourceVersion: string;
}

interface ListOptions {
  /** Reads from etcd instead of the API server's watch cache. */
  readonly isFresh: boolean;
  readonly signal?: AbortSignal;
}

/**
 * All objects of a selection, page by page. When the continue token expires, the list is fetched again without pages.
 * @throws ApiError, AppError bad_gateway KUBE_NOT_A_LIST
 */
export async function fetchList(api: Api, from: Selection, options: ListOptions): Promise<ObjectList> {
  try {
    const first: Record<string, string> = options.isFresh ? {} : { resourceVersion: '0' };
    return await fetchPages(api, from, { ...first, limit: PAGE }, options.signal);
  } catch (error) {
    if (!isApiError(error, 'Gone')) throw error;
    return fetchPages(api, from, {}, options.signal);
  }
}

async function fetchPages(
  api: Api,
  { resource, namespace, labelSelector, metadataOnly }: Selection,
  first: Readonly<Record<string, string>>,
  signal: AbortSignal | undefined,
): Promise<ObjectList> {
  const selector = labelSelector === undefined ? {} : { labelSelector };
  const accept = metadataOnly === true ? PARTIAL : 'application/json';
  const objects: KubeObject[] = [];
  let query = first;
  for (;;) {
    const body = await api.call({
      verb: 'list',
      resource,
      namespace,
      query: { ...query, ...selector },
      accept,
      signal,
    });
    const page = parsePage(body);
    for (const item of page.items) objects.push(parseObject(item, resource));
    if (page.more === '') return { objects, resourceVersion: page.resourceVersion };
    query = { limit: PAGE, continue: page.more };
  }
}

function parsePage(body: unknown) {
  const metadata = isRecord(body) ? body['metadata'] : undefined;
  const items = isRecord(body) ? (body['items'] ?? []) : undefined;
  const resourceVersion = isRecord(metadata) ? metadata['resourceVersion'] : undefined;
  if (!isRecord(metadata) || !Array.isArray(items) || typeof resourceVersion !== 'string') {
    throw operatorError('KUBE_NOT_A_LIST', 'The API server sent something that is not a list');
  }
  const more = metadata['continue'];
  return { items: items as readonly unknown[], resourceVersion, more: typeof more === 'string' ? more : '' };
}

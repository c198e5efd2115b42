import { z } from 'zod';
import { labels, MANAGED_BY, PART_OF } from '../../api/names.ts';
import { operatorError } from '../../errors.ts';
import type { Api } from '../../kube/api.ts';
import { isApiError } from '../../kube/errors.ts';
import { configMaps } from '../../kube/kinds.ts';
import { isRecord, type KubeObject } from '../../kube/resource.ts';
import type { Clients, Platform } from '../../platform/clients.ts';
import type { Dependencies } from '../reconciler/dependencies.ts';
import { isServiceUnavailable } from '../reconciler/error-outcome.ts';
import type { FinalizeRequest, FinalizeResult, ManagedResource } from '../reconciler/kind.ts';

/** Name of the ConfigMap with pending cleanups of deleted objects, one per namespace. */
export const ORPHANS_CONFIG_MAP = 'chancery-orphans';
/** How long a deletion waits for its service before it records the cleanup and ends. */
const serviceWaitMs = 20_000;

const orphanSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('Tenant'), name: z.string(), policy: z.enum(['Retain', 'Suspend']) }),
  z.object({ kind: z.literal('Register'), name: z.string(), policy: z.literal('Retain') }),
]);

/** The pending cleanup of a deleted resource; its key is the uid. */
export type Orphan = Readonly<z.output<typeof orphanSchema>>;

/** Parses the records of a ConfigMap; unreadable ones are dropped. */
export function readOrphans({ data }: KubeObject): ReadonlyMap<string, Orphan> {
  const found = new Map<string, Orphan>();
  for (const [uid, text] of Object.entries(isRecord(data) ? data : {})) {
    const parsed = orphanSchema.safeParse(parseJson(text));
    if (parsed.success) found.set(uid, parsed.data);
  }
  return found;
}

function parseJson(text: unknown): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}

/** Whether a deletion has waited longer than the limit for an unavailable service. */
function isUnavailableTooLong(error: unknown, deletionTimestamp: string | undefined, nowMs: number): boolean {
  return isServiceUnavailable(error) && nowMs - Date.parse(deletionTimestamp ?? '') >= serviceWaitMs;
}

interface OrphanLocation {
  readonly namespace: string;
  /** Name of the installation, if known. */
  readonly installation: string | undefined;
}

/**
 * Records a pending cleanup, so that the object can be deleted. In a namespace that is being deleted nothing is recorded.
 * @throws ApiError, NotLeader
 */
async function recordOrphan(
  api: Api,
  { namespace, installation = 'unknown' }: OrphanLocation,
  { uid, orphan }: { readonly uid: string; readonly orphan: Orphan },
): Promise<void> {
  const data = { [uid]: JSON.stringify(orphan) };
  if (await patchOrphans(api, namespace, data)) return;
  const own = {
    [labels.partOf]: PART_OF,
    [labels.managedBy]: MANAGED_BY,
    [labels.installation]: installation,
    [labels.retain]: 'true',
  };
  const metadata = { name: ORPHANS_CONFIG_MAP, namespace, labels: own };
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
  try {
    await api.call({ verb: 'create', resource: configMaps, namespace, body });
  } catch (error) {
    // the services are deleted with the namespace, so there is nothing to clean up
    if (!isApiError(error, 'Forbidden') || !error.message.includes('being terminated')) throw error;
  }
}

/** Ends a deletion with a record; the cleanup follows when the service answers. */
async function recordAndRelease(
  api: Api,
  { resource, installation }: Pick<FinalizeRequest<ManagedResource>, 'resource' | 'installation'>,
  orphan: Orphan,
): Promise<FinalizeResult> {
  const { uid, namespace } = resource.metadata;
  await recordOrphan(api, { namespace, installation: installation?.installation }, { uid, orphan });
  const note = `The ${orphan.kind.toLowerCase()} service is unavailable; ${orphan.policy} is recorded in ConfigMap ${ORPHANS_CONFIG_MAP} and follows when it answers`;
  return { done: true, events: [{ type: 'Warning', reason: 'DependencyNotReady', action: 'Delete', note }] };
}

interface RemovalOptions {
  /** Record for an unavailable service; undefined when the deletion must remove data and therefore waits. */
  readonly orphan: Orphan | undefined;
  remove(clients: Clients): Promise<FinalizeResult>;
}

/** The services of an object's installation. Throws AppError unavailable NO_INSTALLATION, and like Platform.of. */
async function clientsOf(
  platform: Platform,
  { installation }: FinalizeRequest<ManagedResource>,
): Promise<Clients> {
  if (installation !== undefined) return platform.of(installation);
  const message =
    'The description of the installation cannot be read, so the addresses of its services are unknown';
  throw operatorError('NO_INSTALLATION', message);
}

/**
 * Cleans up an object at its service. If the deletion keeps the data, it waits at most 20 s for an unavailable service and
 * then records the cleanup.
 */
export async function removeOrRecord(
  { api, timing }: Pick<Dependencies, 'api' | 'timing'>,
  platform: Platform,
  request: FinalizeRequest<ManagedResource>,
  { orphan, remove }: RemovalOptions,
): Promise<FinalizeResult> {
  try {
    return await remove(await clientsOf(platform, request));
  } catch (error) {
    const { deletionTimestamp } = request.resource.metadata;
    if (orphan === undefined || !isUnavailableTooLong(error, deletionTimestamp, timing.nowMs())) throw error;
    return recordAndRelease(api, request, orphan);
  }
}

/** Deletes a record after its cleanup. */
export async function deleteOrphanRecord(api: Api, namespace: string, uid: string): Promise<void> {
  await patchOrphans(api, namespace, { [uid]: null });
}

/** Patches the ConfigMap; returns whether it exists. */
async function patchOrphans(
  api: Api,
  namespace: string,
  data: Readonly<Record<string, string | null>>,
): Promise<boolean> {
  const contentType = 'application/merge-patch+json';
  try {
    await api.call({
      verb: 'patch',
      resource: configMaps,
      namespace,
      name: ORPHANS_CONFIG_MAP,
      contentType,
      body: { data },
    });
    return true;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return false;
    throw error;
  }
}

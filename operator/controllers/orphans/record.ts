import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import { labels, MANAGED_BY, PART_OF } from '../../api/names.ts';
import type { Api } from '../../kube/api.ts';
import { isApiError } from '../../kube/errors.ts';
import { configMaps } from '../../kube/kinds.ts';
import { isRecord, type KubeObject } from '../../kube/resource.ts';
import type { Clients, Platform } from '../../platform/clients.ts';
import type { Parts } from '../reconciler/dependencies.ts';
import type { Finalization, FinalizePass, Managed } from '../reconciler/kind.ts';
import { isAway } from '../reconciler/requeue-error.ts';

/** ConfigMap of a namespace with what objects that are gone have left undone. */
export const ORPHANS = 'chancery-orphans';
/** So long a deletion waits for its service before it leaves a record instead. */
const PATIENCE_MS = 20_000;

const orphanSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('Tenant'), name: z.string(), policy: z.enum(['Retain', 'Suspend']) }),
  z.object({ kind: z.literal('Register'), name: z.string(), policy: z.literal('Retain') }),
]);

/** What is still to be done for a resource that is gone; its uid is the key. */
export type Orphan = Readonly<z.output<typeof orphanSchema>>;

/** The records of a ConfigMap; what cannot be read is left out. */
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

/** Whether a deletion that keeps its data has waited long enough for a service that is away. */
function isAwayTooLong(error: unknown, deletionTimestamp: string | undefined, nowMs: number): boolean {
  return isAway(error) && nowMs - Date.parse(deletionTimestamp ?? '') >= PATIENCE_MS;
}

interface Place {
  readonly namespace: string;
  /** Name of the installation, where it is known. */
  readonly installation: string | undefined;
}

/**
 * Writes down what is left to do, so that the object can go.
 * @throws ApiError, NotLeader; in a namespace that is going nothing is written and nothing is left to do
 */
async function recordOrphan(
  api: Api,
  { namespace, installation = 'unknown' }: Place,
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
  const metadata = { name: ORPHANS, namespace, labels: own };
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
  try {
    await api.call({ verb: 'create', resource: configMaps, namespace, body });
  } catch (error) {
    // the installation goes with its namespace, and its services with it
    if (!isApiError(error, 'Forbidden') || !error.message.includes('being terminated')) throw error;
  }
}

/** Ends a deletion by a record: what is left is done as soon as the service answers. The object may go then. */
async function leaveOrphan(
  api: Api,
  { resource, installation }: Pick<FinalizePass<Managed>, 'resource' | 'installation'>,
  orphan: Orphan,
): Promise<Finalization> {
  const { uid, namespace } = resource.metadata;
  await recordOrphan(api, { namespace, installation: installation?.installation }, { uid, orphan });
  const note = `The ${orphan.kind.toLowerCase()} service is away; ${orphan.policy} is done as soon as it answers, from ConfigMap ${ORPHANS}`;
  return { done: true, events: [{ type: 'Warning', reason: 'DependencyNotReady', action: 'Delete', note }] };
}

interface Removal {
  /** What is left to do where the service is away; undefined of an object whose data is to go. */
  readonly orphan: Orphan | undefined;
  remove(clients: Clients): Promise<Finalization>;
}

/** The services of an object's installation. Throws AppError unavailable NO_INSTALLATION, and like Platform.of. */
async function clientsOf(platform: Platform, { installation }: FinalizePass<Managed>): Promise<Clients> {
  if (installation !== undefined) return platform.of(installation);
  const message =
    'The configuration of the installation cannot be read, so nobody knows where its services are';
  throw new AppError('unavailable', 'NO_INSTALLATION', message);
}

/**
 * Ends what an object has to do with its service. Where that keeps the data, a service that is away is not waited for
 * longer than 20 s.
 */
export async function removeOrLeave(
  { api, timing }: Pick<Parts, 'api' | 'timing'>,
  platform: Platform,
  pass: FinalizePass<Managed>,
  { orphan, remove }: Removal,
): Promise<Finalization> {
  try {
    return await remove(await clientsOf(platform, pass));
  } catch (error) {
    const { deletionTimestamp } = pass.resource.metadata;
    if (orphan === undefined || !isAwayTooLong(error, deletionTimestamp, timing.nowMs())) throw error;
    return leaveOrphan(api, pass, orphan);
  }
}

/** Takes a record away: it was dealt with. */
export async function eraseOrphan(api: Api, namespace: string, uid: string): Promise<void> {
  await patchOrphans(api, namespace, { [uid]: null });
}

/** Whether the ConfigMap was there. */
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
      name: ORPHANS,
      contentType,
      body: { data },
    });
    return true;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return false;
    throw error;
  }
}

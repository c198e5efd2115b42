import { operatorError } from '../../errors.ts';
import { Controller, type ReconcileContext, type Requeue } from '../../kube/controller.ts';
import { configMaps } from '../../kube/kinds.ts';
import { splitKey } from '../../kube/resource.ts';
import type { Clients, Platform } from '../../platform/clients.ts';
import type { Dependencies } from '../reconciler/dependencies.ts';
import type { Reconciler } from '../reconciler/reconciler.ts';
import { deleteOrphanRecord, ORPHANS_CONFIG_MAP, type Orphan, readOrphans } from './record.ts';

/** Carries out recorded cleanups of deleted objects when their service answers again. */
export function createOrphanSweeper(dependencies: Dependencies, platform: Platform): Reconciler {
  const { timing, metrics, caches, runtime } = dependencies;
  const name = 'orphans';
  const cache = caches.of(configMaps);
  const controller = new Controller({
    name,
    timing,
    metrics,
    log: runtime.log,
    workers: 1,
    reconcile: (key, context) => sweep(dependencies, platform, { key, context }),
  });
  const unsubscribe = cache.subscribe(({ key, object }) => {
    if (object.metadata.name === ORPHANS_CONFIG_MAP) controller.queue.add(key);
  });
  return {
    name,
    controller,
    start: () => void caches.synced(configMaps).then(() => controller.start()),
    stop: async (graceMs) => {
      unsubscribe();
      await controller.stop(graceMs);
    },
  };
}

interface SweepRequest {
  readonly key: string;
  readonly context: ReconcileContext;
}

async function sweep(
  { caches, installations, api }: Dependencies,
  platform: Platform,
  { key, context: { signal, log } }: SweepRequest,
): Promise<Requeue | undefined> {
  const object = caches.of(configMaps).find(key);
  const { namespace = '' } = splitKey(key);
  const orphans = object === undefined ? new Map<string, Orphan>() : readOrphans(object);
  if (orphans.size === 0 || !installations.isOurs(namespace)) return undefined;
  const { installation, fault } = installations.find(namespace);
  if (installation === undefined) throw operatorError('NO_INSTALLATION', fault.message);
  const clients = await platform.of(installation);
  for (const [uid, orphan] of orphans) {
    await carryOut(clients, uid, { orphan, signal });
    await deleteOrphanRecord(api, namespace, uid);
    log.info(
      { subject: orphan.name, action: orphan.policy },
      'Carried out the recorded cleanup of a deleted object',
    );
  }
  return undefined;
}

async function carryOut(
  { organizations, registers }: Clients,
  uid: string,
  { orphan, signal }: { readonly orphan: Orphan; readonly signal: AbortSignal },
): Promise<void> {
  if (orphan.kind === 'Tenant') await organizations.remove(uid, orphan.policy, signal);
  else await registers.remove(uid, orphan.policy, signal);
}

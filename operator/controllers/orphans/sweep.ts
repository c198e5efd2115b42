import { AppError } from '#core/errors/errors.ts';
import { Controller, type ReconcileContext, type Requeue } from '../../kube/controller.ts';
import { configMaps } from '../../kube/kinds.ts';
import { splitKey } from '../../kube/resource.ts';
import type { Clients, Platform } from '../../platform/clients.ts';
import type { Parts } from '../reconciler/dependencies.ts';
import type { Shell } from '../reconciler/reconciler.ts';
import { eraseOrphan, ORPHANS, type Orphan, readOrphans } from './record.ts';

/** Carries out what objects left undone when their service was away, as soon as it answers again. */
export function createOrphanSweeper(parts: Parts, platform: Platform): Shell {
  const { timing, metrics, caches, runtime } = parts;
  const name = 'orphans';
  const cache = caches.of(configMaps);
  const controller = new Controller({
    name,
    timing,
    metrics,
    log: runtime.log,
    workers: 1,
    reconcile: (key, context) => sweep(parts, platform, { key, context }),
  });
  const unsubscribe = cache.subscribe(({ key, object }) => {
    if (object.metadata.name === ORPHANS) controller.queue.add(key);
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

interface Look {
  readonly key: string;
  readonly context: ReconcileContext;
}

async function sweep(
  { caches, installations, api }: Parts,
  platform: Platform,
  { key, context: { signal, log } }: Look,
): Promise<Requeue | undefined> {
  const object = caches.of(configMaps).find(key);
  const { namespace = '' } = splitKey(key);
  const orphans = object === undefined ? new Map<string, Orphan>() : readOrphans(object);
  if (orphans.size === 0 || !installations.isOurs(namespace)) return undefined;
  const { installation, fault } = installations.find(namespace);
  if (installation === undefined) throw new AppError('unavailable', 'NO_INSTALLATION', fault.message);
  const clients = await platform.of(installation);
  for (const [uid, orphan] of orphans) {
    await settle(clients, uid, { orphan, signal });
    await eraseOrphan(api, namespace, uid);
    log.info({ subject: orphan.name, action: orphan.policy }, 'Did what a deleted object had left undone');
  }
  return undefined;
}

async function settle(
  { organizations, registers }: Clients,
  uid: string,
  { orphan, signal }: { readonly orphan: Orphan; readonly signal: AbortSignal },
): Promise<void> {
  if (orphan.kind === 'Tenant') await organizations.remove(uid, orphan.policy, signal);
  else await registers.remove(uid, orphan.policy, signal);
}

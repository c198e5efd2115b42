import { labels } from '../../api/names.ts';
import type { Api } from '../../kube/api.ts';
import { type Applier, type Child, childId } from '../../kube/apply.ts';
import { prune } from '../../kube/prune.ts';
import { type KubeObject, keyOf } from '../../kube/resource.ts';
import { Blocked } from './blocked.ts';
import type { Caches } from './caches.ts';
import type { Kind, Managed, Pass } from './kind.ts';

/** While somebody else keeps changing what we set, as often as that may be put back. */
const CONTESTED_MS = 10_000;

interface Application<R extends Managed> {
  readonly api: Api;
  readonly caches: Caches;
  readonly applier: Applier;
  readonly kind: Kind<R>;
  readonly pass: Pass<R>;
  readonly children: readonly Child[];
}

/**
 * Applies children in order, then deletes what is not wanted any more.
 * @throws Blocked ReconcileThrottled with the name of who fights with us over one of them
 */
export async function applyChildren<R extends Managed>(of: Application<R>): Promise<readonly KubeObject[]> {
  const { api, caches, applier, kind, pass, children } = of;
  const { object, signal } = pass;
  const live: KubeObject[] = [];
  const fought: string[] = [];
  const rivals = new Set<string>();
  for (const child of children) {
    const applied = await applier.apply(object, child, signal);
    live.push(applied.object);
    if (applied.action !== 'throttled') continue;
    fought.push(`${child.object.kind} ${keyOf(child.object.metadata)}`);
    for (const each of applied.rivals) rivals.add(each);
  }
  const deleted = await prune({
    api,
    ownerUid: object.metadata.uid ?? '',
    caches: kind.children.map((resource) => ({ resource, cache: caches.of(resource) })),
    wanted: new Set(children.map(childId)),
    retainLabel: labels.retain,
    signal,
  });
  if (deleted.length > 0) pass.log.info({ children: deleted }, 'Deleted what is not wanted any more');
  if (fought.length > 0) throw contested(fought, [...rivals]);
  return live;
}

function contested(objects: readonly string[], rivals: readonly string[]): Blocked {
  const whom = rivals.length === 0 ? 'somebody' : rivals.join(', ');
  const message = `${objects.join(', ')}: changed again and again by ${whom}`;
  return new Blocked('ReconcileThrottled', message, { state: 'stalled', retryAfterMs: CONTESTED_MS });
}

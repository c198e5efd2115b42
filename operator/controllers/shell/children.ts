import { AppError } from '#core/errors/errors.ts';
import type { Outcome } from '../../api/conditions.ts';
import { labels } from '../../api/names.ts';
import type { Api } from '../../kube/api.ts';
import { type Applier, type Child, childId } from '../../kube/apply.ts';
import { prune } from '../../kube/prune.ts';
import { type KubeObject, keyOf } from '../../kube/resource.ts';
import type { Caches } from './caches.ts';
import type { Kind, Managed, Pass } from './kind.ts';

/** Somebody else keeps changing what we set. */
export class Throttled extends AppError {
  readonly outcome: Outcome;

  constructor(objects: readonly string[], rivals: readonly string[]) {
    const whom = rivals.length === 0 ? 'somebody' : rivals.join(', ');
    const message = `${objects.join(', ')}: changed again and again by ${whom}`;
    super('conflict', 'RECONCILE_THROTTLED', message);
    this.name = 'Throttled';
    this.outcome = { state: 'stalled', reason: 'ReconcileThrottled', message };
  }
}

interface Application<R extends Managed> {
  readonly api: Api;
  readonly caches: Caches;
  readonly applier: Applier;
  readonly kind: Kind<R>;
  readonly pass: Pass<R>;
  readonly children: readonly Child[];
}

/** Applies children in order, then deletes what is not wanted any more. */
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
  if (fought.length > 0) throw new Throttled(fought, [...rivals]);
  return live;
}

import type { Outcome } from '../../api/conditions.ts';
import { labels } from '../../api/names.ts';
import type { Api } from '../../kube/api.ts';
import { type Applier, type Child, childId } from '../../kube/apply.ts';
import { prune } from '../../kube/prune.ts';
import { keyOf } from '../../kube/resource.ts';
import { stalled } from '../../plan/outcome.ts';
import type { Caches } from './caches.ts';
import type { AppliedChildren, Kind, Managed, Pass } from './kind.ts';

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
 * @returns what was written, and ReconcileThrottled with the name of who fights with us over one of them
 */
export async function applyChildren<R extends Managed>(
  of: Application<R>,
): Promise<Pick<AppliedChildren, 'written'> & { readonly contested?: Outcome }> {
  const { api, caches, applier, kind, pass, children } = of;
  const { object, signal } = pass;
  const fought: string[] = [];
  const competingManagers = new Set<string>();
  const written = new Set<string>();
  for (const child of children) {
    const applied = await applier.apply(object, child, signal);
    if (applied.action !== 'throttled') {
      if (applied.action !== 'unchanged' || applied.isBehind) written.add(child.object.kind);
      continue;
    }
    fought.push(`${child.object.kind} ${keyOf(child.object.metadata)}`);
    for (const each of applied.competingManagers) competingManagers.add(each);
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
  if (fought.length === 0) return { written };
  const whom = competingManagers.size === 0 ? 'somebody' : [...competingManagers].join(', ');
  const message = `${fought.join(', ')}: changed again and again by ${whom}`;
  return { written, contested: stalled('ReconcileThrottled', message) };
}

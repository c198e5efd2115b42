import type { Outcome } from '../../api/conditions.ts';
import { labels } from '../../api/names.ts';
import type { Api } from '../../kube/api.ts';
import { type Applier, type Child, childId } from '../../kube/apply.ts';
import { prune } from '../../kube/prune.ts';
import { keyOf } from '../../kube/resource.ts';
import { stalled } from '../../plan/outcome.ts';
import type { Caches } from './caches.ts';
import type { AppliedChildren, KindHandler, ManagedResource, ObjectRequest } from './kind.ts';

interface ApplyRequest<R extends ManagedResource> {
  readonly api: Api;
  readonly caches: Caches;
  readonly applier: Applier;
  readonly kind: KindHandler<R>;
  readonly request: ObjectRequest<R>;
  readonly children: readonly Child[];
}

/**
 * Applies children in order, then prunes undesired ones.
 * @returns the written kinds, and a ReconcileThrottled outcome that names the competing managers
 */
export async function applyChildren<R extends ManagedResource>(
  of: ApplyRequest<R>,
): Promise<Pick<AppliedChildren, 'written'> & { readonly contested?: Outcome }> {
  const { api, caches, applier, kind, request, children } = of;
  const { object, signal } = request;
  const contestedChildren: string[] = [];
  const competingManagers = new Set<string>();
  const written = new Set<string>();
  for (const child of children) {
    const applied = await applier.apply(object, child, signal);
    if (applied.action !== 'throttled') {
      if (applied.action !== 'unchanged' || applied.isBehind) written.add(child.object.kind);
      continue;
    }
    contestedChildren.push(`${child.object.kind} ${keyOf(child.object.metadata)}`);
    for (const each of applied.competingManagers) competingManagers.add(each);
  }
  const deleted = await prune({
    api,
    ownerUid: object.metadata.uid ?? '',
    caches: kind.children.map((resource) => ({ resource, cache: caches.of(resource) })),
    desiredIds: new Set(children.map(childId)),
    retainLabel: labels.retain,
    signal,
  });
  if (deleted.length > 0) request.log.info({ children: deleted }, 'Pruned children');
  if (contestedChildren.length === 0) return { written };
  const managers = competingManagers.size === 0 ? 'an unknown manager' : [...competingManagers].join(', ');
  const message = `${contestedChildren.join(', ')}: fields of the operator are changed repeatedly by ${managers}; stop that writer`;
  return { written, contested: stalled('ReconcileThrottled', message) };
}

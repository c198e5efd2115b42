import type { Timing } from '#kit/clock/timing.ts';
import type { Logger } from '#kit/log/log.ts';
import { outcomeUpdates, setConditions, stampTime } from '../../api/conditions.ts';
import { fieldManagers, type ManagedKind } from '../../api/names.ts';
import type { CustomResource } from '../../api/object.ts';
import { parseRegister } from '../../api/register.ts';
import { parseTenant } from '../../api/tenant.ts';
import { parseValidatorSet } from '../../api/validator-set.ts';
import type { Api } from '../../kube/api.ts';
import { isApiError } from '../../kube/errors.ts';
import { namespaces } from '../../kube/kinds.ts';
import { fetchList } from '../../kube/list.ts';
import { type KubeObject, parseObject, type Resource } from '../../kube/resource.ts';
import { StatusWriter } from '../../kube/status.ts';
import { planNamespaceDeletion } from '../../plan/namespace-deletion/plan.ts';
import { stalled } from '../../plan/outcome.ts';
import { removeFinalizer } from '../reconciler/finalizer.ts';
import type { BaseStatus } from '../reconciler/kind.ts';
import { registers, tenants, validatorSets } from '../reconciler/resources.ts';

interface NamespaceDeletionOptions {
  /** The fenced port: only the leader removes finalizers. */
  readonly api: Api;
  readonly timing: Timing;
  readonly log: Logger;
  /** Namespace of this process. */
  readonly namespace: string;
}

/** Time limit within the grace period of a stopping process. */
const deadlineMs = 10_000;
/** Attempts after conflicting writes. */
const rounds = 3;

interface KindParser {
  readonly kind: ManagedKind;
  readonly resource: Resource;
  readonly parse: (object: KubeObject) => CustomResource<{ readonly deletionPolicy?: string }, BaseStatus>;
}

const kinds: readonly KindParser[] = [
  { kind: 'Register', resource: registers, parse: parseRegister },
  { kind: 'Tenant', resource: tenants, parse: parseTenant },
  {
    kind: 'ValidatorSet',
    resource: validatorSets,
    parse: (object) => ({ ...parseValidatorSet(object), spec: {} }),
  },
];

/**
 * Removes finalizers when the operator's own namespace is being deleted, because no operator is left afterwards to remove
 * them. Call it after the controllers have stopped and while the lease is held. Without such a deletion it costs one call.
 * @throws ApiError, NotLeader
 */
export async function releaseOnNamespaceDeletion(options: NamespaceDeletionOptions): Promise<void> {
  const { api, log, namespace } = options;
  const signal = AbortSignal.timeout(deadlineMs);
  const found = parseObject(await api.call({ verb: 'get', resource: namespaces, name: namespace, signal }));
  if (found.metadata.deletionTimestamp === undefined) return;
  log.warn({ subject: namespace }, 'The namespace is being deleted; finalizers of its objects are removed');
  for (const each of kinds) {
    for (let round = 1; ; round += 1) {
      const contested = await releaseKind(options, each, signal);
      if (contested === 0 || round === rounds) break;
    }
  }
}

/** Returns the number of objects with conflicting writes. */
async function releaseKind(
  options: NamespaceDeletionOptions,
  of: KindParser,
  signal: AbortSignal,
): Promise<number> {
  const { api, namespace } = options;
  const { objects } = await fetchList(api, { resource: of.resource, namespace }, { isFresh: true, signal });
  let contested = 0;
  for (const object of objects) {
    try {
      await releaseObject(options, of, { object, signal });
    } catch (error) {
      if (!isApiError(error, 'Conflict')) throw error;
      contested += 1;
    }
  }
  return contested;
}

async function releaseObject(
  { api, timing, log }: NamespaceDeletionOptions,
  { kind, resource, parse }: KindParser,
  { object, signal }: { readonly object: KubeObject; readonly signal: AbortSignal },
): Promise<void> {
  const { metadata, spec, status } = parse(object);
  const plan = planNamespaceDeletion({ kind, metadata, deletionPolicy: spec.deletionPolicy });
  if (plan.action === 'none') return;
  const subject = `${kind} ${metadata.name}`;
  if (plan.action === 'release') {
    await removeFinalizer(api, resource, object, signal);
    log.info({ subject }, 'Removed the finalizer; the object is deleted with its namespace');
    return;
  }
  log.warn({ subject }, plan.message);
  const conditionUpdates = outcomeUpdates(stalled('DeletionBlocked', plan.message));
  const stamp = { generation: metadata.generation, now: stampTime(timing.nowMs()) };
  const conditions = setConditions(status.conditions ?? [], conditionUpdates, stamp);
  const writer = new StatusWriter({ api, resource, manager: fieldManagers(kind).status });
  await writer.write(object, { ...status, conditions }, signal);
}

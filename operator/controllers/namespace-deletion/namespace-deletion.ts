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
import type { Timing } from '../../kube/time.ts';
import { planDeparture } from '../../plan/namespace-deletion/plan.ts';
import { stalled } from '../../plan/outcome.ts';
import { removeFinalizer } from '../reconciler/finalizer.ts';
import type { BaseStatus } from '../reconciler/kind.ts';
import { registers, tenants, validatorSets } from '../reconciler/resources.ts';

export interface DepartureOptions {
  /** Behind the fence: only who leads lets anything go. */
  readonly api: Api;
  readonly timing: Timing;
  readonly log: Logger;
  /** Of this process. */
  readonly namespace: string;
}

/** A process that is asked to end has this long for it. */
const DEADLINE_MS = 10_000;
/** Somebody else may write an object between the look at it and the patch. */
const ROUNDS = 3;

interface Leaving {
  readonly kind: ManagedKind;
  readonly resource: Resource;
  readonly parse: (object: KubeObject) => CustomResource<{ readonly deletionPolicy?: string }, BaseStatus>;
}

const kinds: readonly Leaving[] = [
  { kind: 'Register', resource: registers, parse: parseRegister },
  { kind: 'Tenant', resource: tenants, parse: parseTenant },
  {
    kind: 'ValidatorSet',
    resource: validatorSets,
    parse: (object) => ({ ...parseValidatorSet(object), spec: {} }),
  },
];

/**
 * The last act of an operator whose own namespace is being deleted: nobody is left after it to end what holds its
 * objects. Called when the controllers have stopped and the lease is still held; elsewhere it costs one call.
 * @throws ApiError, NotLeader
 */
export async function leaveWithNamespace(options: DepartureOptions): Promise<void> {
  const { api, log, namespace } = options;
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const found = parseObject(await api.call({ verb: 'get', resource: namespaces, name: namespace, signal }));
  if (found.metadata.deletionTimestamp === undefined) return;
  log.warn({ subject: namespace }, 'The namespace is being deleted, and this process with it');
  for (const each of kinds) {
    for (let round = 1; ; round += 1) {
      const contested = await letGo(options, each, signal);
      if (contested === 0 || round === ROUNDS) break;
    }
  }
}

/** Gives how many objects somebody else has changed meanwhile. */
async function letGo(options: DepartureOptions, of: Leaving, signal: AbortSignal): Promise<number> {
  const { api, namespace } = options;
  const { objects } = await fetchList(api, { resource: of.resource, namespace }, { isFresh: true, signal });
  let contested = 0;
  for (const object of objects) {
    try {
      await depart(options, of, { object, signal });
    } catch (error) {
      if (!isApiError(error, 'Conflict')) throw error;
      contested += 1;
    }
  }
  return contested;
}

async function depart(
  { api, timing, log }: DepartureOptions,
  { kind, resource, parse }: Leaving,
  { object, signal }: { readonly object: KubeObject; readonly signal: AbortSignal },
): Promise<void> {
  const { metadata, spec, status } = parse(object);
  const departure = planDeparture({ kind, metadata, deletionPolicy: spec.deletionPolicy });
  if (departure.act === 'none') return;
  const subject = `${kind} ${metadata.name}`;
  if (departure.act === 'go') {
    await removeFinalizer(api, resource, object, signal);
    log.info({ subject }, 'Goes with its namespace');
    return;
  }
  log.warn({ subject }, departure.message);
  const conditionUpdates = outcomeUpdates(stalled('DeletionBlocked', departure.message));
  const stamp = { generation: metadata.generation, now: stampTime(timing.nowMs()) };
  const conditions = setConditions(status.conditions ?? [], conditionUpdates, stamp);
  const writer = new StatusWriter({ api, resource, manager: fieldManagers(kind).status });
  await writer.write(object, { ...status, conditions }, signal);
}

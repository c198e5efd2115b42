import type { ActionMark } from '#core/blueprint/diagram/graph.ts';
import { isExpired } from '#core/blueprint/steps/blockers.ts';
import { applyStep, type Branch, branchesAt } from '#core/blueprint/steps/instance.ts';
import { TICKS_PER_MILLISECOND } from '#core/encoding/timestamp.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import { findPublication } from '../definitions/publications/store.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { refusal } from '../errors.ts';
import type { PinnedDefinition } from './definitions.ts';
import { blockersOf, currentActions, type Instance } from './instance.ts';
import type { Resolved } from './present.ts';
import { findInstances, listSteps } from './store.ts';
import { type InstanceView, type ViewDeps, viewInstance } from './view.ts';

export interface ReadDeps extends ViewDeps {
  readonly db: Pick<Database<BlueprintDatabase>, 'read'>;
  readonly clock: Clock;
}

/**
 * The instance of an id, as the caller may read it.
 * @throws AppError not_found INSTANCE_NOT_FOUND, forbidden INSTANCE_ACCESS_DENIED
 */
export async function readInstance(
  deps: ReadDeps,
  subject: Subject,
  instanceId: string,
): Promise<InstanceView> {
  const candidates = await findInstances(deps.db.read, instanceId, new Date(deps.clock.nowMs()));
  return viewInstance(deps, candidates, subject);
}

/** The definition of an instance with its publication. */
export async function resolve(
  { db, definitions }: Pick<ReadDeps, 'db' | 'definitions'>,
  { registerId, blueprintId, pin }: Pick<Instance, 'registerId' | 'blueprintId' | 'pin'>,
): Promise<Resolved> {
  const publication = await findPublication(db.read, { registerId, blueprintId, publicationTxId: pin });
  const pinned = publication === undefined ? undefined : await definitions.find(registerId, pin);
  return { pinned, publication };
}

/** The branches of an instance, from its steps; those past their deadline at the given moment are timed out. */
export async function readBranches(
  { db }: Pick<ReadDeps, 'db'>,
  { registerId, instanceId, pin, routing }: Instance,
  nowMs: number,
): Promise<readonly Branch[]> {
  if (routing === undefined) return [];
  const steps = await listSteps(db.read, registerId, instanceId);
  let folded: ReturnType<typeof applyStep>;
  let previous = pin;
  for (const { txId, sender, sealedAt, routing: each, position } of steps) {
    const at = sealedAt.toISOString();
    const step = {
      txId,
      previousTransactionId: previous,
      position,
      senderAddress: sender,
      createdAt: at,
      sealedAt: at,
      routing: each,
    };
    folded = applyStep(folded, step) ?? folded;
    previous = txId;
  }
  return folded === undefined ? [] : branchesAt(folded, BigInt(nowMs) * TICKS_PER_MILLISECOND);
}

/** What the picture of an instance shows of its actions. */
export async function readMarks(
  deps: Pick<ReadDeps, 'db' | 'clock'>,
  instance: Instance,
  { workflow }: PinnedDefinition,
): Promise<ReadonlyMap<number, ActionMark>> {
  const nowMs = deps.clock.nowMs();
  const steps = await listSteps(deps.db.read, instance.registerId, instance.instanceId);
  const marks = new Map<number, ActionMark>();
  for (const { actionId, isRejection } of steps) if (!isRejection) marks.set(actionId, 'done');
  const nowTicks = BigInt(nowMs) * TICKS_PER_MILLISECOND;
  const open =
    instance.stateReason === 'TimedOut'
      ? (instance.routing?.current ?? [])
      : currentActions(instance, workflow);
  for (const entry of open) {
    const isBlocked = blockersOf(instance, workflow, entry.actionId, nowMs).length > 0;
    marks.set(entry.actionId, isExpired(entry, nowTicks) ? 'timedOut' : isBlocked ? 'blocked' : 'current');
  }
  return marks;
}

/** The definition that an answer needs. @throws AppError conflict PIN_UNRESOLVABLE */
export function pinnedOf({ pinned }: InstanceView): PinnedDefinition {
  if (pinned === undefined) throw refusal('PIN_UNRESOLVABLE');
  return pinned;
}

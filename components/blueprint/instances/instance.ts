import { isExpired, listBlockers } from '#core/blueprint/steps/blockers.ts';
import { type CurrentAction, parseRouting, type Routing } from '#core/blueprint/steps/routing.ts';
import { participantWallets, type Workflow } from '#core/blueprint/steps/workflow.ts';
import { TICKS_PER_MILLISECOND } from '#core/encoding/timestamp.ts';

export type InstanceState = 'Pending' | 'Active' | 'Completed' | 'Failed';

/** An instance: as it was created here, as its sealed steps leave it, or both. */
export interface Instance {
  readonly instanceId: string;
  readonly registerId: string;
  readonly pin: string;
  readonly blueprintId: string;
  readonly state: InstanceState;
  readonly stateReason: string | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly completedAt: Date | undefined;
  readonly firstTxId: string | undefined;
  readonly lastTxId: string | undefined;
  /** Of the last step; undefined before the first one. */
  readonly routing: Routing | undefined;
  readonly completedCount: number;
  /** Undefined for an instance that another installation or an earlier database created. */
  readonly start: InstanceStart | undefined;
}

/** What was asked for when the instance was created here. */
interface InstanceStart {
  readonly participantWallets: Readonly<Record<string, string>>;
  readonly tenantId: string;
  readonly metadata: Readonly<Record<string, string | number | boolean>>;
  readonly createdBy: string;
  readonly organizationId: string | undefined;
  readonly startOperation: string | undefined;
}

/** The actions that may be taken next: the starting ones before the first step, none behind the end. */
export function currentActions(
  instance: Pick<Instance, 'state' | 'routing'>,
  workflow: Workflow,
): readonly CurrentAction[] {
  if (instance.state === 'Completed' || instance.state === 'Failed') return [];
  if (instance.routing !== undefined) return instance.routing.current;
  const starting = [...workflow.actions.values()].filter(({ isStarting }) => isStarting);
  return starting.map(({ id }) => ({ actionId: id })).sort((one, other) => one.actionId - other.actionId);
}

/** Current actions that are not past their deadline at a moment, milliseconds since the epoch. */
export function openActions(
  instance: Pick<Instance, 'state' | 'routing'>,
  workflow: Workflow,
  nowMs: number,
): readonly CurrentAction[] {
  const nowTicks = BigInt(nowMs) * TICKS_PER_MILLISECOND;
  return currentActions(instance, workflow).filter((entry) => !isExpired(entry, nowTicks));
}

/** Whether any wallet may take a starting action. */
export function hasOpenStart({ actions, participants }: Workflow): boolean {
  return [...actions.values()].some(
    ({ isStarting, sender }) => isStarting && participants.get(sender) === undefined,
  );
}

/** Wallets by participant: closed ones, bound ones, and before the first step those given at creation. */
export function walletsOf(
  { routing, start }: Pick<Instance, 'routing' | 'start'>,
  workflow: Workflow,
): ReadonlyMap<string, string> {
  return participantWallets(workflow, routing?.roles ?? start?.participantWallets ?? {});
}

/** Current actions that block an action at a moment, milliseconds since the epoch. */
export function blockersOf(
  instance: Pick<Instance, 'state' | 'routing'>,
  workflow: Workflow,
  actionId: number,
  nowMs: number,
): readonly number[] {
  return listBlockers(
    workflow,
    currentActions(instance, workflow),
    actionId,
    BigInt(nowMs) * TICKS_PER_MILLISECOND,
  );
}

/** The routing of a row that the projection wrote. */
export function routingOfRow(text: string): Routing {
  const routing = parseRouting(text);
  if (routing === undefined) throw new Error('a stored routing cannot be parsed');
  return routing;
}

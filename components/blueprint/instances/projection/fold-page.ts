import { listBlockers } from '#core/blueprint/steps/blockers.ts';
import { parseRouting, type Routing } from '#core/blueprint/steps/routing.ts';
import { participantWallets, type Workflow } from '#core/blueprint/steps/workflow.ts';
import { findTimestamp } from '#core/encoding/timestamp.ts';
import type { InstanceRow, InstanceTable, RoleRow, StepRow } from '../../database/instance-tables.ts';
import { type IgnoredStep, judgeSealed } from './fold.ts';
import type { SealedStep } from './step.ts';

/** What a wallet of an instance is notified of when a step is sealed. */
export interface StepNotice {
  readonly wallet: string;
  readonly registerId: string;
  readonly instanceId: string;
  readonly txId: string;
  readonly actionId: number;
  readonly isRejection: boolean;
  /** Actions that the step made available to this wallet. */
  readonly available: readonly number[];
  readonly hasEnded: boolean;
}

/** The rows that a page of steps leads to. */
interface FoldedPage {
  readonly instances: readonly InstanceRow[];
  readonly steps: readonly StepRow[];
  readonly roles: readonly RoleRow[];
  readonly notices: readonly StepNotice[];
  readonly ignored: readonly { readonly txId: string; readonly reason: IgnoredStep }[];
}

/** The workflow of a pin; undefined when it does not resolve. */
type FindWorkflow = (pin: string) => Workflow | undefined;

/**
 * Folds sealed steps of one register, in the order of the ledger, into the rows of its instances. The same steps give
 * the same rows, whatever pages they are read in.
 */
export function foldPage(
  registerId: string,
  steps: readonly SealedStep[],
  known: readonly InstanceTable[],
  findWorkflow: FindWorkflow,
): FoldedPage {
  const rows = new Map<string, InstanceRow>(known.map((row) => [row.instance_id, row]));
  const changed = new Set<string>();
  const page = { steps: [], roles: [], notices: [], ignored: [] } as {
    steps: StepRow[];
    roles: RoleRow[];
    notices: StepNotice[];
    ignored: { txId: string; reason: IgnoredStep }[];
  };
  for (const step of steps) {
    const { instanceId, blueprintDefinitionTxId } = step.routing;
    const before = rows.get(instanceId);
    const workflow = findWorkflow(blueprintDefinitionTxId);
    const ignored = judgeSealed(step, before && headOf(before), workflow);
    if (ignored !== undefined || workflow === undefined) {
      page.ignored.push({ txId: step.placed.record.txId, reason: ignored ?? 'refused' });
      continue;
    }
    const row = continueInstance(registerId, step, before);
    rows.set(instanceId, row);
    changed.add(instanceId);
    page.steps.push(stepRow(registerId, step));
    page.roles.push(...newRoles(registerId, step, before, workflow));
    page.notices.push(...noticesOf(registerId, step, before, workflow));
  }
  const instances = [...changed].flatMap((id) => rows.get(id) ?? []);
  return { ...page, instances };
}

function headOf(row: InstanceRow) {
  return { lastTxId: row.last_tx_id, seq: row.seq, routing: row.routing };
}

function continueInstance(
  registerId: string,
  { placed, routing, routingText }: SealedStep,
  before: InstanceRow | undefined,
): InstanceRow {
  const { record } = placed;
  const at = new Date(placed.sealedAt);
  const { ended, isRejection } = routing;
  return {
    register_id: registerId,
    instance_id: routing.instanceId,
    publication_tx_id: routing.blueprintDefinitionTxId,
    blueprint_id: record.blueprintId ?? '',
    first_tx_id: before?.first_tx_id ?? record.txId,
    last_tx_id: record.txId,
    seq: routing.seq,
    routing: routingText,
    state: ended === undefined ? 'Active' : ended === 'Completed' ? 'Completed' : 'Failed',
    state_reason: ended === 'Rejected' ? 'Rejected' : null,
    completed_count: (before?.completed_count ?? 0) + (isRejection === true ? 0 : 1),
    started_at: before?.started_at ?? at,
    updated_at: at,
    completed_at: ended === undefined ? null : at,
    times_out_at: timeoutOf(routing),
  };
}

/** The latest deadline of the current actions; null when one of them has none. */
function timeoutOf({ current }: Routing): Date | null {
  const deadlines = current.map(({ until }) => until);
  if (deadlines.length === 0 || deadlines.includes(undefined)) return null;
  return new Date(Math.max(...deadlines.map((until) => Date.parse(until ?? ''))));
}

function stepRow(registerId: string, { placed, routing, routingText }: SealedStep): StepRow {
  const { record } = placed;
  return {
    register_id: registerId,
    tx_id: record.txId,
    instance_id: routing.instanceId,
    seq: routing.seq,
    action_id: routing.completedActionId,
    type: record.type,
    sender: record.senderAddress,
    docket_number: placed.position.docket,
    position: placed.position.index,
    sealed_at: new Date(placed.sealedAt),
    routing: routingText,
  };
}

function newRoles(
  registerId: string,
  { routing }: SealedStep,
  before: InstanceRow | undefined,
  workflow: Workflow,
): RoleRow[] {
  const earlier = before === undefined ? undefined : parseRouting(before.routing);
  const known =
    earlier === undefined ? new Map<string, string>() : participantWallets(workflow, earlier.roles);
  return [...participantWallets(workflow, routing.roles)]
    .filter(([participant]) => !known.has(participant))
    .map(([participant, wallet]) => ({
      register_id: registerId,
      instance_id: routing.instanceId,
      participant_id: participant,
      wallet,
    }));
}

/** The actions that can be taken at a moment: current, in time, and blocked by none. */
function availableActions(workflow: Workflow, routing: Routing | undefined, nowTicks: bigint): number[] {
  const current = routing?.current ?? [];
  return current
    .filter(({ actionId }) => listBlockers(workflow, current, actionId, nowTicks).length === 0)
    .map(({ actionId }) => actionId);
}

/** One notice a wallet: what was done, and what the wallet can do now that it could not do before. */
function noticesOf(
  registerId: string,
  { placed, routing }: SealedStep,
  before: InstanceRow | undefined,
  workflow: Workflow,
): StepNotice[] {
  const nowTicks = findTimestamp(placed.sealedAt) ?? 0n;
  const earlier = before === undefined ? undefined : parseRouting(before.routing);
  const already = new Set(availableActions(workflow, earlier, nowTicks));
  already.delete(routing.completedActionId);
  const activated = new Set(routing.nextActions.map(({ actionId }) => actionId));
  const available = availableActions(workflow, routing, nowTicks).filter(
    (id) => activated.has(id) || !already.has(id),
  );
  const wallets = participantWallets(workflow, routing.roles);
  return [...new Set(wallets.values())].map((wallet) => ({
    wallet,
    registerId,
    instanceId: routing.instanceId,
    txId: placed.record.txId,
    actionId: routing.completedActionId,
    isRejection: routing.isRejection === true,
    available: available.filter((id) => wallets.get(workflow.actions.get(id)?.sender ?? '') === wallet),
    hasEnded: routing.ended !== undefined,
  }));
}

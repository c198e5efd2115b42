import { findTimestamp } from '../../encoding/timestamp.ts';
import { isExpired } from './blockers.ts';
import { BRANCH_SEPARATOR, branchKeys, segmentParts } from './branches.ts';
import { isStep, type StepRecord } from './judge.ts';
import { type CurrentAction, findRouting, type Routing } from './routing.ts';

/** Position of a record in the order of its register. */
interface LedgerPosition {
  readonly docketNumber: number;
  readonly index: number;
}

/** A sealed record with its place in the register. */
interface PlacedRecord extends StepRecord {
  readonly txId: string;
  readonly position: LedgerPosition;
  /** Timestamp of the docket. */
  readonly sealedAt: string;
}

/** A sealed step. */
export interface SealedStep {
  readonly txId: string;
  readonly previousTransactionId: string;
  readonly position: LedgerPosition;
  readonly senderAddress: string;
  readonly createdAt: string;
  readonly sealedAt: string;
  readonly routing: Routing;
}

type BranchState = 'Active' | 'Completed' | 'TimedOut' | 'Rejected';

/** A branch of a fan-out; a fan-out that is taken again begins its branches anew. */
export interface Branch {
  /** Its branch key. */
  readonly id: string;
  /** The lowest of its current actions; the last one when it is no longer active. */
  readonly currentActionId: number;
  readonly state: BranchState;
  readonly deadline?: string | undefined;
  readonly sourceActionId: number;
  readonly sourceRouteId: string;
  /** The last step that began it or took one of its actions. */
  readonly lastTransactionId: string;
}

/** A running workflow as its sealed steps tell it. */
export interface Instance {
  readonly instanceId: string;
  readonly blueprintDefinitionTxId: string;
  readonly firstTransactionId: string;
  readonly lastTransactionId: string;
  /** Position of the first step: of two starts of one id the first in the ledger counts. */
  readonly firstPosition: LedgerPosition;
  readonly seq: number;
  readonly current: readonly CurrentAction[];
  readonly roles: Readonly<Record<string, string>>;
  readonly ended?: 'Completed' | 'Rejected' | undefined;
  /** Of the last step alone. */
  readonly routeId?: string | undefined;
  readonly reasonCode?: string | undefined;
  readonly completedActionCount: number;
  readonly rejectionCount: number;
  /** Ascending by id. */
  readonly branches: readonly Branch[];
  /** Times of dockets. */
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly endedAt?: string | undefined;
}

interface InstanceState {
  readonly state: 'Pending' | 'Active' | 'Completed' | 'Failed';
  readonly stateReason?: 'Rejected' | 'TimedOut' | undefined;
}

/** Reads the step in a sealed record; undefined for any other record. */
export function findStep(record: PlacedRecord): SealedStep | undefined {
  const routing = isStep(record) ? findRouting(record.metadata) : undefined;
  const { previousTransactionId } = record;
  if (routing === undefined || routing === 'malformed' || previousTransactionId === undefined)
    return undefined;
  const { txId, position, senderAddress, createdAt, sealedAt } = record;
  return { txId, previousTransactionId, position, senderAddress, createdAt, sealedAt, routing };
}

/** Order of two positions, for sorting. */
function comparePositions(one: LedgerPosition, other: LedgerPosition): number {
  return one.docketNumber - other.docketNumber || one.index - other.index;
}

function isFirst({ routing, previousTransactionId }: SealedStep): boolean {
  return routing.seq === 0 && previousTransactionId === routing.blueprintDefinitionTxId;
}

function isWithin(key: string, { branchKey }: CurrentAction): boolean {
  return branchKey !== undefined && (branchKey === key || branchKey.startsWith(`${key}${BRANCH_SEPARATOR}`));
}

/** The branches that the current actions are in, each with the lowest of its actions and its deadline. */
function openBranches(current: readonly CurrentAction[]): Map<string, CurrentAction> {
  const open = new Map<string, CurrentAction>();
  for (const entry of current) {
    for (const key of entry.branchKey === undefined ? [] : branchKeys(entry.branchKey)) {
      if (!open.has(key)) open.set(key, entry);
    }
  }
  return open;
}

function openBranch(id: string, entry: CurrentAction, lastTransactionId: string): Branch {
  const { actionId, routeId } = segmentParts(id.slice(id.lastIndexOf(BRANCH_SEPARATOR) + 1));
  return {
    id,
    currentActionId: entry.actionId,
    state: 'Active',
    ...(entry.until !== undefined && { deadline: entry.until }),
    sourceActionId: Number(actionId),
    sourceRouteId: routeId,
    lastTransactionId,
  };
}

/** How a branch ended that the step left without a current action. */
function endOf(branch: Branch, before: readonly CurrentAction[], step: SealedStep): BranchState {
  const { ended, isRejection, completedActionId } = step.routing;
  if (ended === 'Rejected') return 'Rejected';
  const within = before.filter((entry) => isWithin(branch.id, entry));
  if (within.some(({ actionId }) => actionId === completedActionId))
    return isRejection ? 'Rejected' : 'Completed';
  const createdTicks = findTimestamp(step.createdAt) ?? 0n;
  return within.every((entry) => isExpired(entry, createdTicks)) ? 'TimedOut' : 'Completed';
}

function branchAfter(
  branch: Branch | undefined,
  id: string,
  {
    before,
    open,
    step,
  }: { before: readonly CurrentAction[]; open: CurrentAction | undefined; step: SealedStep },
): Branch[] {
  const isTaken = before.some(
    (entry) => entry.actionId === step.routing.completedActionId && isWithin(id, entry),
  );
  const isNew = branch?.state !== 'Active';
  const last = isTaken || isNew ? step.txId : (branch?.lastTransactionId ?? step.txId);
  if (open !== undefined) return [openBranch(id, open, last)];
  if (branch === undefined) return [];
  if (branch.state !== 'Active') return [branch];
  return [{ ...branch, state: endOf(branch, before, step), lastTransactionId: last }];
}

function branchesAfter(
  branches: readonly Branch[],
  before: readonly CurrentAction[],
  step: SealedStep,
): readonly Branch[] {
  const known = new Map(branches.map((branch) => [branch.id, branch]));
  const open = openBranches(step.routing.current);
  const ids = [...new Set([...known.keys(), ...open.keys()])].sort();
  return ids.flatMap((id) => branchAfter(known.get(id), id, { before, open: open.get(id), step }));
}

function follows(instance: Instance | undefined, step: SealedStep): boolean {
  if (instance === undefined) return isFirst(step);
  const { instanceId, blueprintDefinitionTxId, seq } = step.routing;
  return (
    step.previousTransactionId === instance.lastTransactionId &&
    instanceId === instance.instanceId &&
    blueprintDefinitionTxId === instance.blueprintDefinitionTxId &&
    seq === instance.seq + 1
  );
}

/**
 * The instance after a step that the ledger has judged; undefined when the step is not the next one, and all steps have
 * to be folded again.
 * @param instance undefined before the first step
 */
export function applyStep(instance: Instance | undefined, step: SealedStep): Instance | undefined {
  if (!follows(instance, step)) return undefined;
  const { routing, txId, sealedAt } = step;
  const { routeId, reasonCode, ended, isRejection } = routing;
  return {
    instanceId: routing.instanceId,
    blueprintDefinitionTxId: routing.blueprintDefinitionTxId,
    firstTransactionId: instance?.firstTransactionId ?? txId,
    lastTransactionId: txId,
    firstPosition: instance?.firstPosition ?? step.position,
    seq: routing.seq,
    current: routing.current,
    roles: routing.roles,
    ...(ended !== undefined && { ended, endedAt: sealedAt }),
    ...(routeId !== undefined && { routeId }),
    ...(reasonCode !== undefined && { reasonCode }),
    completedActionCount: (instance?.completedActionCount ?? 0) + (isRejection ? 0 : 1),
    rejectionCount: (instance?.rejectionCount ?? 0) + (isRejection ? 1 : 0),
    branches: branchesAfter(instance?.branches ?? [], instance?.current ?? [], step),
    startedAt: instance?.startedAt ?? sealedAt,
    updatedAt: sealedAt,
  };
}

/**
 * The steps of one instance in their order, from records in any order: the first start in the ledger, then each step
 * that follows the one before. Other starts of the id and what follows them are no part of it.
 */
function orderSteps(steps: Iterable<SealedStep>): SealedStep[] {
  const sorted = [...steps].sort((one, other) => comparePositions(one.position, other.position));
  const successors = new Map<string, SealedStep>();
  for (const step of sorted) {
    if (!isFirst(step) && !successors.has(step.previousTransactionId))
      successors.set(step.previousTransactionId, step);
  }
  const ordered: SealedStep[] = [];
  // A step can only follow one with a lower number, so the chain ends.
  for (let step = sorted.find(isFirst); step !== undefined; ) {
    ordered.push(step);
    const next = successors.get(step.txId);
    step = next?.routing.seq === step.routing.seq + 1 ? next : undefined;
  }
  return ordered;
}

/** The instance that sealed steps of one id make, in any order; undefined while its first step is missing. */
export function foldInstance(steps: Iterable<SealedStep>): Instance | undefined {
  let instance: Instance | undefined;
  for (const step of orderSteps(steps)) {
    const next = applyStep(instance, step);
    if (next === undefined) break;
    instance = next;
  }
  return instance;
}

/**
 * State of an instance at a moment, ticks of 100 ns since the epoch. An instance whose current actions are all past their
 * deadline has failed, although no record says so.
 */
export function stateAt(instance: Instance | undefined, nowTicks: bigint): InstanceState {
  if (instance === undefined) return { state: 'Pending' };
  if (instance.ended === 'Completed') return { state: 'Completed' };
  if (instance.ended === 'Rejected') return { state: 'Failed', stateReason: 'Rejected' };
  if (instance.current.every((each) => isExpired(each, nowTicks)))
    return { state: 'Failed', stateReason: 'TimedOut' };
  return { state: 'Active' };
}

/** Branches at a moment: active ones past their deadline are timed out. */
export function branchesAt(instance: Instance, nowTicks: bigint): readonly Branch[] {
  return instance.branches.map((branch) => {
    const isOpen = instance.current.some(
      (entry) => isWithin(branch.id, entry) && !isExpired(entry, nowTicks),
    );
    return branch.state === 'Active' && !isOpen ? { ...branch, state: 'TimedOut' } : branch;
  });
}

import { canonicalJson } from '../../encoding/jcs.ts';
import type { Violation } from '../../errors/errors.ts';
import { validationViolation } from '../../errors/validation-codes.ts';
import { advance, type Step } from './advance.ts';
import { isExpired } from './blockers.ts';
import { type CurrentAction, INSTANCE_ID, parseRouting, type Routing, routingText } from './routing.ts';
import type { Workflow } from './workflow.ts';

/** The members of a record that decide whether it is a step, and which. */
export interface StepRecord {
  readonly type: string;
  readonly blueprintId?: string | undefined;
  readonly actionId?: string | undefined;
  readonly previousTransactionId?: string | undefined;
  readonly senderAddress: string;
  readonly createdAt: string;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** The record that `previousTransactionId` names. */
export interface Predecessor {
  readonly txId: string;
  readonly type: string;
  /** The text of its routing, when it has one. */
  readonly routing?: string | undefined;
}

export interface StepContext {
  /** The compiled definition of the record's pin; undefined when it does not compile or is not known. */
  readonly workflow: Workflow | undefined;
  /** The pin is a publication that an earlier docket sealed. */
  readonly isPinKnown: boolean;
  /** Undefined when the record names none, or one that is not known. */
  readonly predecessor: Predecessor | undefined;
  /** Time of the docket or, before there is one, of admission: ticks of 100 ns since the epoch. */
  readonly nowTicks: bigint;
}

function isStepType(type: string): boolean {
  return type === 'Action' || type === 'Rejection';
}

/** Whether a record is a step of an instance: an Action or a Rejection with routing, well-formed or not. */
export function isStep({ type, metadata }: Pick<StepRecord, 'type' | 'metadata'>): boolean {
  return isStepType(type) && routingText(metadata) !== undefined;
}

function isStepBefore(predecessor: Predecessor | undefined): boolean {
  return predecessor !== undefined && isStepType(predecessor.type) && predecessor.routing !== undefined;
}

function refuse(field: string, message: string): Violation[] {
  return [validationViolation('VAL_BP_003', field, message)];
}

function refusePin(message?: string): Violation[] {
  return [validationViolation('VAL_BP_VERSION_001', 'metadata.routing.blueprintDefinitionTxId', message)];
}

/** Judges that the record's other members tell the same step as its routing. */
function judgeMembers(record: StepRecord, routing: Routing, workflow: Workflow): Violation[] {
  const isRejection = routing.isRejection === true;
  if ((record.type === 'Rejection') !== isRejection)
    return refuse('type', 'The type is not that of the routing.');
  if (record.blueprintId !== workflow.blueprintId) {
    return refuse('blueprintId', 'The blueprint is not the one that the pin published.');
  }
  if (record.actionId !== String(routing.completedActionId)) {
    return refuse('actionId', 'The action is not that of the routing.');
  }
  if (record.metadata?.[INSTANCE_ID] !== routing.instanceId) {
    return refuse('metadata.instanceId', 'The instance is not that of the routing.');
  }
  return [];
}

/** Finds the routing before the step; undefined for a first step. */
function findBefore(
  { previousTransactionId }: StepRecord,
  { blueprintDefinitionTxId: pin }: Routing,
  predecessor: Predecessor | undefined,
): { readonly routing: Routing | undefined } | Violation[] {
  if (previousTransactionId === pin) return { routing: undefined };
  const field = 'previousTransactionId';
  if (predecessor === undefined || predecessor.txId !== previousTransactionId) {
    return refuse(field, 'A step follows the publication or the last step of its instance.');
  }
  if (!isStepBefore(predecessor)) {
    return refuse(field, 'The previous transaction is neither a step nor the publication of the pin.');
  }
  const routing = parseRouting(predecessor.routing ?? '');
  return routing === undefined
    ? refuse(field, 'The routing of the previous step is malformed.')
    : { routing };
}

/** The roles that a first step binds besides that of its sender. */
function boundRoles(workflow: Workflow, { completedActionId, roles }: Routing): Record<string, string> {
  const starter = workflow.actions.get(completedActionId)?.sender;
  const isStarterOpen = starter !== undefined && workflow.participants.get(starter) === undefined;
  return Object.fromEntries(
    Object.entries(roles).filter(([participant]) => !(isStarterOpen && participant === starter)),
  );
}

function stepOf(record: StepRecord, routing: Routing, first: Workflow | undefined): Step {
  const { instanceId, blueprintDefinitionTxId: pin, completedActionId: actionId } = routing;
  return {
    instanceId,
    pin,
    actionId,
    routeId: routing.routeId,
    isRejection: routing.isRejection,
    reasonCode: routing.reasonCode,
    sender: record.senderAddress,
    createdAt: record.createdAt,
    boundRoles: first === undefined ? undefined : boundRoles(first, routing),
  };
}

/**
 * Judges deadlines by the clock of the ledger. `createdAt` is the sender's own: one that is set forward must not remove a
 * branch that still has time.
 */
function judgeDeadlines(
  taken: CurrentAction,
  dropped: readonly CurrentAction[],
  nowTicks: bigint,
): Violation[] {
  if (isExpired(taken, nowTicks)) {
    return refuse('actionId', `Action ${taken.actionId} could be taken until ${taken.until}.`);
  }
  const early = dropped.find((each) => !isExpired(each, nowTicks));
  if (early === undefined) return [];
  return refuse('createdAt', `Action ${early.actionId} can still be taken until ${early.until}.`);
}

function judgeRouted(record: StepRecord, text: string, context: StepContext): Violation[] {
  const { workflow, isPinKnown, predecessor, nowTicks } = context;
  const routing = parseRouting(text);
  if (routing === undefined) return refuse('metadata.routing', 'The routing is malformed.');
  if (workflow === undefined || !isPinKnown) return refusePin();
  const members = judgeMembers(record, routing, workflow);
  if (members.length > 0) return members;
  const before = findBefore(record, routing, predecessor);
  if (Array.isArray(before)) return before;
  const first = before.routing === undefined ? workflow : undefined;
  const advanced = advance(workflow, before.routing, stepOf(record, routing, first));
  if ('violations' in advanced) return [...advanced.violations];
  if (canonicalJson(advanced.routing) !== text) {
    return refuse('metadata.routing', 'The routing is not the one that follows from the definition.');
  }
  return judgeDeadlines(advanced.taken, advanced.dropped, nowTicks);
}

/**
 * Judges a record as a step of an instance, by the pinned definition and the record before it. Judged are Actions and
 * Rejections with routing, and whatever follows one: a transaction has one successor, so any other transaction behind a
 * step would stop the instance for good. Other records have no violations. Payloads are not read. Total: any input gets
 * an answer.
 *
 * Codes: VAL_BP_001 the first step is no starting action; VAL_BP_002 the sender is not the participant; VAL_BP_003 the
 * step does not follow; VAL_BP_VERSION_001 the pin does not resolve or differs from that of the previous step.
 */
export function judgeStep(record: StepRecord, context: StepContext): Violation[] {
  const text = isStep(record) ? routingText(record.metadata) : undefined;
  if (text !== undefined) return judgeRouted(record, text, context);
  if (!isStepBefore(context.predecessor)) return [];
  return refuse('previousTransactionId', 'Only the next step of its instance can follow a step.');
}

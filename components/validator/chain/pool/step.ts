import { isStep, judgeStep, type Predecessor, type StepRecord } from '#core/blueprint/steps/judge.ts';
import { INSTANCE_ID, parseRouting, ROUTING, routingText } from '#core/blueprint/steps/routing.ts';
import type { Workflow } from '#core/blueprint/steps/workflow.ts';
import { ownText } from '#core/encoding/text.ts';
import type { Violation } from '#core/errors/errors.ts';

/** What judging a step needs beside its record and the time. It never changes: definitions and records are immutable. */
interface StepContext {
  /** Undefined when the pin is unknown or its definition is no workflow. */
  readonly workflow: Workflow | undefined;
  readonly isPinKnown: boolean;
  /** The predecessor as the register service stored it; undefined when it was not stored. */
  readonly sealed: Predecessor | undefined;
}

/** A transaction that is a step of an instance. */
export interface Step {
  readonly record: StepRecord;
  readonly routing: string;
  /** Empty when the routing is malformed. */
  readonly pin: string;
  /** Absent until it is looked up: a docket with such a step is refused. */
  readonly context?: StepContext | undefined;
}

/** The members of a transaction that judging steps needs. */
interface JudgedTransaction {
  readonly type: string;
  readonly senderAddress: string;
  readonly createdAt: string;
  readonly previousTransactionId: string | undefined;
  readonly step?: Step | undefined;
}

/** A transaction as the predecessor of another one. */
type KnownTransaction = Pick<JudgedTransaction, 'type' | 'step'>;

/** The step that a record is; undefined for any other one. Its texts are copies. */
export function findStep(record: StepRecord): Step | undefined {
  const text = isStep(record) ? routingText(record.metadata) : undefined;
  if (text === undefined) return undefined;
  const { type, blueprintId, actionId, previousTransactionId, senderAddress, createdAt } = record;
  const instanceId = record.metadata?.[INSTANCE_ID];
  const routing = ownText(text);
  return {
    record: {
      type,
      blueprintId: blueprintId && ownText(blueprintId),
      actionId: actionId && ownText(actionId),
      previousTransactionId: previousTransactionId && ownText(previousTransactionId),
      senderAddress: ownText(senderAddress),
      createdAt: ownText(createdAt),
      metadata: {
        [ROUTING]: routing,
        ...(instanceId !== undefined && { [INSTANCE_ID]: ownText(instanceId) }),
      },
    },
    routing,
    pin: parseRouting(routing)?.blueprintDefinitionTxId ?? '',
  };
}

/** A predecessor that is known here. */
function predecessorOf(txId: string, { type, step }: KnownTransaction): Predecessor {
  return { txId, type, routing: step?.routing };
}

interface JudgeContext {
  /** Time of the docket, or of admission. */
  readonly nowTicks: bigint;
  /**
   * The predecessor in the same docket, or in the pool. It takes precedence over what was looked up earlier: an id that
   * is not derived from its envelope may have been given to another record meanwhile.
   */
  find(txId: string): KnownTransaction | undefined;
  /** The predecessor as the register service stored it, for a transaction that is no step. */
  readonly sealed?: Predecessor | undefined;
}

/** Judges a transaction as a step, or as one that follows a step. Other transactions cost one look into `find`. */
export function judgeWorkflow(
  transaction: JudgedTransaction,
  { nowTicks, find, sealed }: JudgeContext,
): Violation[] {
  const { step, previousTransactionId: previous } = transaction;
  const here = previous === undefined ? undefined : find(previous);
  const known = previous !== undefined && here !== undefined ? predecessorOf(previous, here) : undefined;
  if (step !== undefined) {
    const { workflow, isPinKnown = false, sealed: before } = step.context ?? {};
    return judgeStep(step.record, { workflow, isPinKnown, predecessor: known ?? before, nowTicks });
  }
  const predecessor = known ?? sealed;
  if (predecessor?.routing === undefined) return [];
  const { type, senderAddress, createdAt } = transaction;
  const record = { type, senderAddress, createdAt, previousTransactionId: previous };
  return judgeStep(record, { workflow: undefined, isPinKnown: false, predecessor, nowTicks });
}

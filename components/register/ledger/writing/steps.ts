import { isStep, judgeStep, type Predecessor } from '#core/blueprint/steps/judge.ts';
import { parseRouting, routingText } from '#core/blueprint/steps/routing.ts';
import type { Workflow } from '#core/blueprint/steps/workflow.ts';
import { findTimestamp } from '#core/encoding/timestamp.ts';
import type { Violation } from '#core/errors/errors.ts';
import type { SealedRecord } from '#core/ledger/record.ts';

/** What is known of a predecessor. */
export interface PredecessorFacts {
  readonly type: string;
  /** `routing` of a step; undefined for other transactions */
  readonly routing: string | undefined;
}

/** Sealed transactions that are predecessors of a docket's transactions, by id. */
export type Predecessors = ReadonlyMap<string, PredecessorFacts>;

interface DocketRecords {
  readonly records: readonly SealedRecord[];
  /** of the docket */
  readonly timestamp: string;
}

/** The workflows of publications that earlier dockets sealed, by pin; undefined when a definition is no workflow. */
export type PinnedWorkflows = ReadonlyMap<string, Workflow | undefined>;

/** What its successor is judged by. */
export function predecessorFactsOf(record: SealedRecord): PredecessorFacts {
  return { type: record.type, routing: isStep(record) ? routingText(record.metadata) : undefined };
}

/** The pin of a step; undefined for another record, and when its routing is malformed. */
function findPin(record: SealedRecord): string | undefined {
  const text = isStep(record) ? routingText(record.metadata) : undefined;
  return text === undefined ? undefined : parseRouting(text)?.blueprintDefinitionTxId;
}

/** The pins of a docket's steps, each once. */
export function pinsOf({ records }: Pick<DocketRecords, 'records'>): string[] {
  return [...new Set(records.flatMap((record) => findPin(record) ?? []))];
}

/**
 * Judges the steps of a docket, and what follows one. A pin must be sealed in an earlier docket: validators cannot know
 * a publication before it is stored, and would not agree on its steps.
 */
export function judgeSteps(
  { records, timestamp }: DocketRecords,
  sealed: Predecessors,
  workflows: PinnedWorkflows,
): Violation[] {
  const nowTicks = findTimestamp(timestamp) ?? 0n;
  const known = new Map(sealed);
  return records.flatMap((record, index) => {
    const txId = record.previousTransactionId;
    const facts = txId === undefined ? undefined : known.get(txId);
    const predecessor: Predecessor | undefined = txId && facts ? { txId, ...facts } : undefined;
    known.set(record.txId, predecessorFactsOf(record));
    if (!isStep(record) && predecessor?.routing === undefined) return [];
    const pin = findPin(record) ?? '';
    const context = { workflow: workflows.get(pin), isPinKnown: workflows.has(pin), predecessor, nowTicks };
    return judgeStep(record, context).map((one) => ({
      ...one,
      field: `transactions[${index}].record.${one.field}`,
    }));
  });
}

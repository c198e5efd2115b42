import { findPublication } from '#core/blueprint/publication.ts';
import { findStep, foldInstance, type Instance, type SealedStep } from '#core/blueprint/steps/instance.ts';
import { isStep, judgeStep, type Predecessor, type StepRecord } from '#core/blueprint/steps/judge.ts';
import { findRouting, INSTANCE_ID, type Routing, routingText } from '#core/blueprint/steps/routing.ts';
import { compileWorkflow, type Workflow } from '#core/blueprint/steps/workflow.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { parseTimestamp } from '#core/encoding/timestamp.ts';
import { isAppError, type Violation } from '#core/errors/errors.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import { MAX_EXPORT_LINE_BYTES, parseExportLine } from '#core/ledger/export/lines.ts';
import type { ExportedTransaction } from '#core/ledger/export/verify-export.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { demandNone } from '#core/ledger/verification/fault.ts';
import { cliError } from './errors.ts';
import { readLines } from './lines.ts';

/** A definition with the docket that sealed its publication. */
interface PinnedDefinition {
  readonly definition: JsonObject;
  readonly workflow: Workflow | undefined;
  readonly docketNumber: number;
}

/** An instance of which every step follows from its definition. */
export interface VerifiedInstance {
  readonly instance: Instance;
  readonly steps: readonly SealedStep[];
  readonly pinned: PinnedDefinition;
  /** Number of steps with the same id that belong to later starts. */
  readonly others: number;
  /** Timestamp of the register's last docket. */
  readonly readAt: string;
}

function findStepRouting(record: StepRecord): Routing | undefined {
  const routing = isStep(record) ? findRouting(record.metadata) : undefined;
  return routing === 'malformed' ? undefined : routing;
}

function findPinIn(line: Uint8Array, instanceId: string): string | undefined {
  try {
    const parsed = parseExportLine(line);
    if (parsed.kind !== 'transaction') return undefined;
    const routing = findStepRouting(parseRecord(parsed.record));
    return routing?.instanceId === instanceId ? routing.blueprintDefinitionTxId : undefined;
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

/**
 * Finds the pin of an instance in an export, without verifying anything: that of the first step with its id. Undefined
 * when there is none, or the file ends in a line that is not complete.
 */
export async function findPin(
  chunks: AsyncIterable<Uint8Array>,
  instanceId: string,
): Promise<string | undefined> {
  try {
    for await (const line of readLines(chunks, MAX_EXPORT_LINE_BYTES)) {
      const pin = findPinIn(line, instanceId);
      if (pin !== undefined) return pin;
    }
  } catch (error) {
    // The verification that follows reports the line.
    if (!isAppError(error, 'unprocessable')) throw error;
  }
  return undefined;
}

/**
 * Judges the steps of one instance among the transactions of a register, with memory for its steps and its definition.
 * Of two starts of one id the first counts; the steps behind another start are counted, not judged.
 */
export class InstanceReader {
  readonly #instanceId: string;
  readonly #pin: string | undefined;
  #pinned: PinnedDefinition | undefined;
  readonly #steps: SealedStep[] = [];
  /** Steps of the instance by transaction, as predecessors. */
  readonly #chain = new Map<string, Predecessor>();
  /** Steps behind other starts of the same id. */
  readonly #others = new Set<string>();

  constructor(instanceId: string, pin: string | undefined) {
    this.#instanceId = instanceId;
    this.#pin = pin;
  }

  /** Takes the next transaction. Throws like faultOf when it is a step of the instance that does not follow. */
  take(transaction: ExportedTransaction): void {
    const { record, docketNumber } = transaction;
    if (record.txId === this.#pin) this.#keepDefinition(transaction);
    const { previousTransactionId: before = '', txId } = record;
    if (!this.#chain.has(before)) {
      if (!this.#isNamed(record)) return;
      if (this.#isOfOtherStart(record)) {
        this.#others.add(txId);
        return;
      }
    }
    demandNone(this.#judge(transaction), { docketNumber, txId });
    this.#add(transaction);
  }

  /** @throws AppError not_found INSTANCE_UNKNOWN when there was no step of the instance */
  finish(readAt: string): VerifiedInstance {
    const instance = foldInstance(this.#steps);
    const pinned = this.#pinned;
    if (instance === undefined || pinned === undefined) {
      throw cliError('INSTANCE_UNKNOWN', `The register has no instance ${this.#instanceId}`);
    }
    return { instance, steps: this.#steps, pinned, others: this.#others.size, readAt };
  }

  #keepDefinition({ record, payload, docketNumber }: ExportedTransaction): void {
    const publication = findPublication(record, payload);
    if (publication === undefined) return;
    const { definition } = publication.payload;
    this.#pinned = { definition, workflow: compileWorkflow(definition), docketNumber };
  }

  #isNamed(record: StepRecord): boolean {
    if (!isStep(record)) return false;
    const ids = [record.metadata?.[INSTANCE_ID], findStepRouting(record)?.instanceId];
    return ids.includes(this.#instanceId);
  }

  #isOfOtherStart(record: StepRecord): boolean {
    const { previousTransactionId: before } = record;
    if (before === undefined || this.#chain.size === 0) return false;
    return before === findStepRouting(record)?.blueprintDefinitionTxId || this.#others.has(before);
  }

  #judge({ record, docketNumber, sealedAt }: ExportedTransaction): Violation[] {
    const predecessor = this.#chain.get(record.previousTransactionId ?? '');
    const last = this.#steps.at(-1);
    if (predecessor !== undefined && predecessor.txId !== last?.txId) {
      return [validationViolation('VAL_CHAIN_FORK', 'record.previousTransactionId')];
    }
    const pinned = findStepRouting(record)?.blueprintDefinitionTxId === this.#pin ? this.#pinned : undefined;
    return judgeStep(record, {
      workflow: pinned?.workflow,
      isPinKnown: pinned !== undefined && pinned.docketNumber < docketNumber,
      predecessor,
      nowTicks: parseTimestamp(sealedAt),
    });
  }

  #add({ record, docketNumber, index, sealedAt }: ExportedTransaction): void {
    const step = findStep({ ...record, position: { docketNumber, index }, sealedAt });
    if (step === undefined) return;
    const { txId, type, metadata } = record;
    this.#steps.push(step);
    this.#chain.set(txId, { txId, type, routing: routingText(metadata) });
  }
}

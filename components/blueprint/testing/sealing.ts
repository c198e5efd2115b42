import { z } from 'zod';
import { judgeStep } from '#core/blueprint/steps/judge.ts';
import { findRouting, routingText } from '#core/blueprint/steps/routing.ts';
import type { Workflow } from '#core/blueprint/steps/workflow.ts';
import { signerAddress } from '#core/crypto/address.ts';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { formatLedgerTimestamp, TICKS_PER_MILLISECOND } from '#core/encoding/timestamp.ts';
import { buildRecord } from '#core/ledger/record.ts';
import { boundTxId, payloadHash, verifyTransactionSignature } from '#core/ledger/transaction.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Ledger, ParticipantKey, PlacedRecord, SubmissionAnswer } from '../clients/ledger.ts';
import { proveStep } from './proving.ts';

const text = z.string();

const submittedSchema = z.strictObject({
  TransactionId: text,
  RegisterId: text,
  BlueprintId: text,
  ActionId: text,
  PayloadHash: text,
  Signatures: z.tuple([z.object({ PublicKey: text, SignatureValue: text, Algorithm: z.enum(ALGORITHMS) })]),
  CreatedAt: text,
  ExpiresAt: text,
  PreviousTransactionId: text,
  Recipients: z.array(text).optional(),
  Metadata: z.record(text, text),
  Payload: z.custom<JsonObject>(isJsonObject),
});

type Submitted = z.output<typeof submittedSchema>;

interface SealingRegister {
  readonly isSealing: boolean;
  readonly steps: PlacedRecord[];
  readonly publications: readonly { readonly publicationTxId: string }[];
}

interface SealingOptions {
  readonly registers: ReadonlyMap<string, SealingRegister>;
  readonly clock: Clock;
  readonly findWorkflow: (registerId: string, pin: string) => Promise<Workflow | undefined>;
}

const accepted: SubmissionAnswer = { status: 200, code: '', message: '', retryAfterSeconds: 0 };
const refused = (code: string): SubmissionAnswer => ({
  status: 422,
  code,
  message: 'refused',
  retryAfterSeconds: 0,
});

const verifier = createVerifier(nodeEd25519());

function recordOf(given: Submitted) {
  const [{ PublicKey: publicKey, SignatureValue: signatureValue, Algorithm: algorithm }] = given.Signatures;
  const envelope = {
    registerId: given.RegisterId,
    blueprintId: given.BlueprintId,
    actionId: given.ActionId,
    type: given.Metadata['Type'] === 'Rejection' ? ('Rejection' as const) : ('Action' as const),
    payloadHash: given.PayloadHash,
    previousTransactionId: given.PreviousTransactionId,
    createdAt: given.CreatedAt,
    expiresAt: given.ExpiresAt,
    recipients: given.Recipients,
    metadata: given.Metadata,
  };
  const signature = { publicKey, signatureValue, algorithm };
  const txId = boundTxId(envelope, [publicKey]);
  const isSigned =
    txId === given.TransactionId && verifyTransactionSignature(verifier, { txId, ...envelope }, signature);
  const senderAddress = signerAddress(algorithm, publicKey);
  const payloadSize = canonicalBytes(given.Payload).length;
  const parts = { envelope, txId, payloadSize, senderAddress, signatures: [signature], bound: true };
  return { record: buildRecord(parts), isSigned };
}

/** What validators find wrong with a transaction and its place, before they judge the step. */
function findFault({ steps, publications }: SealingRegister, given: Submitted): string | undefined {
  const { record, isSigned } = recordOf(given);
  if (!isSigned || payloadHash(given.Payload) !== given.PayloadHash) return 'VAL_SIG_002';
  const records = steps.map((step) => step.record);
  if (records.some(({ txId }) => txId === record.txId)) return 'VAL_CHAIN_004';
  const previous = record.previousTransactionId;
  if (publications.some(({ publicationTxId }) => publicationTxId === previous)) return undefined;
  return records.some((each) => each.previousTransactionId === previous) ? 'VAL_CHAIN_FORK' : undefined;
}

/** Registers that seal what is submitted, when it is judged right as validators do. */
export function createSealing({ registers, clock, findWorkflow }: SealingOptions) {
  const payloads = new Map<string, Uint8Array>();
  const participantKeys: ParticipantKey[] = [];
  /** The bytes of every submission, in order. */
  const submissions: string[] = [];
  /** Called before a submission is judged, and after it was. */
  const hooks: {
    beforeSubmit?: (() => void | Promise<void>) | undefined;
    afterSubmit?: ((answer: SubmissionAnswer) => void) | undefined;
  } = {};

  async function judge(registerId: string, given: Submitted): Promise<SubmissionAnswer> {
    const register = registers.get(registerId);
    if (register === undefined) return refused('REGISTER_NOT_FOUND');
    const fault = findFault(register, given);
    if (fault !== undefined) return refused(fault);
    const { record } = recordOf(given);
    const routing = findRouting(record.metadata);
    const pin = routing === undefined || routing === 'malformed' ? '' : routing.blueprintDefinitionTxId;
    const workflow = await findWorkflow(registerId, pin);
    const before = register.steps.find(
      ({ record: { txId } }) => txId === record.previousTransactionId,
    )?.record;
    const [violation] = judgeStep(record, {
      workflow,
      isPinKnown: workflow !== undefined,
      predecessor: before && { txId: before.txId, type: before.type, routing: routingText(before.metadata) },
      nowTicks: BigInt(clock.nowMs()) * TICKS_PER_MILLISECOND,
    });
    if (violation !== undefined) return refused(violation.code);
    if (!register.isSealing) return accepted;
    payloads.set(record.txId, canonicalBytes(given.Payload));
    const sealedAt = formatLedgerTimestamp(clock.nowMicros());
    register.steps.push({
      position: { docket: 10 + register.steps.length, index: 0 },
      sealedAt,
      record,
    });
    return accepted;
  }

  const client: Pick<Ledger, 'submit' | 'getPayloads' | 'findParticipantKeys' | 'prove'> = {
    submit: async (registerId, transaction) => {
      const submitted = Buffer.from(transaction).toString();
      await hooks.beforeSubmit?.();
      submissions.push(submitted);
      const answer = await judge(registerId, submittedSchema.parse(JSON.parse(submitted)));
      hooks.afterSubmit?.(answer);
      return answer;
    },
    getPayloads: async (_registerId, txIds) => {
      const found = txIds.flatMap((txId) => {
        const payload = payloads.get(txId);
        return payload === undefined ? [] : [[txId, payload] as const];
      });
      return new Map(found);
    },
    prove: async (registerId, txId) => {
      const step = registers.get(registerId)?.steps.find(({ record }) => record.txId === txId);
      const payload = payloads.get(txId);
      if (step === undefined || payload === undefined) throw new RangeError('the step is not sealed');
      return proveStep(step, payload);
    },
    findParticipantKeys: async (_registerId, addresses) =>
      participantKeys.filter(({ address }) => addresses.includes(address)),
  };
  return { client, hooks, submissions, payloads, participantKeys };
}

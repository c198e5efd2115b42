import { findPublication } from '#core/blueprint/publication.ts';
import { ownText, utf8 } from '#core/encoding/text.ts';
import { TICKS_PER_MILLISECOND, TICKS_PER_SECOND } from '#core/encoding/timestamp.ts';
import type { Violation } from '#core/errors/errors.ts';
import { validationError, validationViolation } from '#core/errors/validation-codes.ts';
import { judgeControlLabel } from '#core/ledger/governance/apply.ts';
import { buildRecord, recordBytes, recordLeaf } from '#core/ledger/record.ts';
import { findReplayKey } from '#core/ledger/replay.ts';
import { boundTxId, signingDigest, signingText } from '#core/ledger/transaction.ts';
import type { VerifyItem } from '#kit/crypto/verify-pool.ts';
import { judgePolicies } from '../../chain/building/overlay.ts';
import { findStep } from '../../chain/pool/step.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import { controlOf, type RegisterState } from '../../chain/state/state.ts';
import { findPayloadBytes } from './payload.ts';
import type { Submission } from './submission.ts';

const futureSkewTicks = 5n * 60n * TICKS_PER_SECOND;
const maxLifeTicks = 24n * 60n * 60n * TICKS_PER_SECOND;

/** The sealable form of a submission once its hash is verified; signatures, chain and authority are still unverified. */
export type Candidate = Omit<PooledTransaction, 'exclusivePredecessor' | 'addedAtMs'>;

interface Limits {
  readonly maxTransactionBytes: number;
  readonly requireBoundTxId: boolean;
}

/** Throws AppError invalid with the violations, if any. */
export function refuseIf(found: readonly Violation[]): void {
  if (found.length > 0) throw validationError(found);
}

/**
 * The fatal stages: size and payload hash. The candidate keeps no reference to the submitted text.
 * Throws AppError with the violation.
 */
export function buildCandidate(submission: Submission, limits: Limits): Candidate {
  const { envelope, txId, signatures, senderAddress } = submission;
  const { maxTransactionBytes, requireBoundTxId } = limits;
  if (submission.payload.end - submission.payload.start > maxTransactionBytes * 4)
    throw tooLarge(maxTransactionBytes);
  const match = findPayloadBytes(submission.payload, envelope.payloadHash);
  if (match === undefined) throw validationError([validationViolation('VAL_HASH_001', 'PayloadHash')]);
  const bound =
    txId ===
    boundTxId(
      envelope,
      signatures.map((signature) => signature.publicKey),
    );
  const isDerived = () => bound || findPublication({ ...envelope, txId }, match.bytes) !== undefined;
  if (requireBoundTxId && !isDerived())
    throw validationError([validationViolation('VAL_STRUCT_011', 'TransactionId')]);
  const payloadSize = match.bytes.length;
  const sealable = buildRecord({ envelope, txId, payloadSize, senderAddress, signatures, bound });
  const { record, payload } = copyIntoOneBuffer(recordBytes(sealable), match.bytes);
  const sizeBytes = record.length + payloadSize;
  if (sizeBytes > maxTransactionBytes) throw tooLarge(maxTransactionBytes);
  const { payloadHash, previousTransactionId: previous } = envelope;
  return {
    registerId: ownText(envelope.registerId),
    txId: ownText(txId),
    type: envelope.type,
    lane: envelope.type === 'Genesis' || envelope.type === 'Control' ? 'control' : 'action',
    senderAddress,
    previousTransactionId: previous && ownText(previous),
    replayKey: findReplayKey({
      type: envelope.type,
      senderAddress,
      payloadHash,
      previousTransactionId: previous,
    }),
    record,
    leaf: recordLeaf(record),
    payload,
    payloadHashForm: match.form,
    bound,
    algorithms: signatures.map(({ algorithm }) => algorithm),
    sizeBytes,
    createdAt: ownText(envelope.createdAt),
    expiresAtMs: expiresAtMs(submission),
    step: findStep(sealable),
  };
}

/** Copies both into one buffer of their own: small buffers are slices of slabs, and a slice that stays referenced keeps its slab in memory. */
function copyIntoOneBuffer(record: Uint8Array, payload: Uint8Array): Pick<Candidate, 'record' | 'payload'> {
  const bytes = new Uint8Array(record.length + payload.length);
  bytes.set(record);
  bytes.set(payload, record.length);
  return { record: bytes.subarray(0, record.length), payload: bytes.subarray(record.length) };
}

function tooLarge(limit: number) {
  return validationError([
    validationViolation('VAL_SIZE_001', undefined, `The transaction is larger than ${limit} bytes`),
  ]);
}

/** min(expiresAt, createdAt + 24 h). Genesis does not expire. */
function expiresAtMs({ envelope, createdAtTicks, expiresAtTicks }: Submission): number {
  if (envelope.type === 'Genesis') return Number.MAX_SAFE_INTEGER;
  const end = createdAtTicks + maxLifeTicks;
  const ticks = expiresAtTicks !== undefined && expiresAtTicks < end ? expiresAtTicks : end;
  return Number(ticks / TICKS_PER_MILLISECOND);
}

/** Whether the timestamps allow admission now. */
export function judgeTimes(submission: Submission, nowMs: number): Violation[] {
  if (submission.envelope.type === 'Genesis') return [];
  const { createdAtTicks, expiresAtTicks } = submission;
  const now = BigInt(nowMs) * TICKS_PER_MILLISECOND;
  const found: Violation[] = [];
  if (createdAtTicks > now + futureSkewTicks) found.push(validationViolation('VAL_TIME_001', 'CreatedAt'));
  if (createdAtTicks + maxLifeTicks <= now) found.push(validationViolation('VAL_TIME_002', 'CreatedAt'));
  if (expiresAtTicks !== undefined && expiresAtTicks <= now) {
    found.push(validationViolation('VAL_TIME_003', 'ExpiresAt'));
  }
  return found;
}

/** The signatures of a submission as items of the verify pool. */
export function signatureChecks(submission: Submission): VerifyItem[] {
  const { txId, envelope, signatures, keys } = submission;
  const digest = signingDigest(txId, envelope.payloadHash);
  return keys.map((key, index) => {
    const algorithm = signatures[index]?.algorithm ?? 'ED25519';
    const preimage = algorithm === 'ED25519' ? undefined : utf8(signingText(txId, envelope.payloadHash));
    return { algorithm, publicKey: key.publicKey, signature: key.signature, digest, preimage };
  });
}

export function judgeSignatures(verdicts: readonly boolean[]): Violation[] {
  return verdicts.flatMap((isRight, index) =>
    isRight ? [] : validationViolation('VAL_SIG_002', `Signatures[${index}]`),
  );
}

/**
 * Judges the register's own rules before the chain lookup: the crypto policy, and whether the signers may use the label of
 * a control transaction. Genesis may only begin a register.
 */
export function judgeLabel(state: RegisterState, candidate: Candidate): readonly Violation[] {
  if (candidate.type === 'Genesis') {
    return state.height === 0 ? [] : [validationViolation('VAL_PERM_002', 'Metadata.Type')];
  }
  const found = judgePolicies(state, candidate);
  if (found.length > 0 || candidate.type !== 'Control') return found;
  return judgeControlLabel(state.ledger, controlOf(candidate));
}

/** The state of the predecessor, from the pool and the register together. */
export interface Predecessor {
  readonly known: boolean;
  readonly exclusive: boolean;
  readonly successor: string | undefined;
}

/** Judges the previous link. */
export function judgeChain(previous: Predecessor | undefined): Violation[] {
  if (previous === undefined) return [];
  if (!previous.known) return [validationViolation('VAL_CHAIN_001', 'PreviousTransactionId')];
  if (!previous.exclusive || previous.successor === undefined) return [];
  return [validationViolation('VAL_CHAIN_FORK', 'PreviousTransactionId')];
}

/** Replay protection: a sender may submit the same payload behind the same predecessor once. `known` is the earlier transaction. */
export function judgeReplay(known: string | undefined): Violation[] {
  return known === undefined ? [] : [validationViolation('VAL_REPLAY_001', 'PayloadHash')];
}

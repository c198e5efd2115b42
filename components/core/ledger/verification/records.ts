import { findPublication } from '../../blueprint/publication.ts';
import type { SignerAddress } from '../../crypto/address.ts';
import { sha256Hex } from '../../crypto/hash.ts';
import { findTimestamp } from '../../encoding/timestamp.ts';
import { isAppError, type Violation } from '../../errors/errors.ts';
import { validationViolation } from '../../errors/validation-codes.ts';
import type { SealedRecord } from '../record.ts';
import { boundTxId } from '../transaction.ts';

/** What a sealed record is judged by: its docket and the policy at that height. */
export interface RecordContext {
  readonly docketNumber: number;
  /** The docket's timestamp. */
  readonly timestamp: string;
  readonly requireBoundTxId: boolean;
  /** One that remembers spares most of the work. */
  readonly addressOf: SignerAddress;
}

function senderOf({ signatures }: SealedRecord, addressOf: SignerAddress): string | undefined {
  const [first] = signatures;
  if (first === undefined) return undefined;
  try {
    return addressOf(first.algorithm, first.publicKey);
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

/** Derived ids are those of the envelope, and of publications, whose id follows from what they publish. */
function judgeIdentity(
  record: SealedRecord,
  payload: Uint8Array,
  { requireBoundTxId, addressOf }: Pick<RecordContext, 'requireBoundTxId' | 'addressOf'>,
): Violation[] {
  const signers = record.signatures.map((signature) => signature.publicKey);
  const found: Violation[] = [];
  if (record.bound !== (boundTxId(record, signers) === record.txId)) {
    found.push(validationViolation('VAL_STRUCT_011', 'record.bound'));
  } else if (requireBoundTxId && !record.bound && findPublication(record, payload) === undefined) {
    found.push(validationViolation('VAL_STRUCT_011', 'record.txId'));
  }
  if (senderOf(record, addressOf) !== record.senderAddress) {
    found.push(validationViolation('VAL_SIG_003', 'record.senderAddress'));
  }
  return found;
}

/** Nothing is expired at the docket's time; a genesis never is. */
function judgeTimes(record: SealedRecord, sealedAt: string): Violation[] {
  if (findTimestamp(record.createdAt) === undefined) {
    return [validationViolation('VAL_STRUCT_006', 'record.createdAt')];
  }
  if (record.type === 'Genesis' || record.expiresAt === undefined) return [];
  const expiresAt = findTimestamp(record.expiresAt);
  if (expiresAt === undefined) return [validationViolation('VAL_STRUCT_006', 'record.expiresAt')];
  const expired = expiresAt <= (findTimestamp(sealedAt) ?? 0n);
  return expired ? [validationViolation('VAL_TIME_003', 'record.expiresAt')] : [];
}

/** Genesis begins a register and nothing else; who may send control transactions the rules say. */
function judgeLabel(record: SealedRecord, docketNumber: number): Violation[] {
  const misplaced = (record.type === 'Genesis') !== (docketNumber === 0);
  return misplaced ? [validationViolation('VAL_PERM_002', 'record.type')] : [];
}

/** Judges that bytes are the payload of a record. */
export function judgePayload(record: SealedRecord, payload: Uint8Array): Violation[] {
  const same = payload.length === record.payloadSize && sha256Hex(payload) === record.payloadHash;
  return same ? [] : [validationViolation('VAL_HASH_001', 'payload')];
}

/**
 * Judges what a sealed record says of its id, sender, times and type. Payload and signatures are judged apart: they are
 * verified where their cost is wanted.
 * @param payload looked into only where an id follows from it
 */
export function judgeRecord(record: SealedRecord, payload: Uint8Array, context: RecordContext): Violation[] {
  return [
    ...judgeIdentity(record, payload, context),
    ...judgeTimes(record, context.timestamp),
    ...judgeLabel(record, context.docketNumber),
  ];
}

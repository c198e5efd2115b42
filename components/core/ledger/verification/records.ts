import { findPublication } from '../../blueprint/publication.ts';
import type { SignerAddress } from '../../crypto/address.ts';
import { sha256Hex } from '../../crypto/hash.ts';
import { findTimestamp } from '../../encoding/timestamp.ts';
import { isAppError, type Violation } from '../../errors/errors.ts';
import { validationViolation } from '../../errors/validation-codes.ts';
import type { SealedRecord } from '../record.ts';
import { boundTxId } from '../transaction.ts';

/** The docket of a sealed record and the policy at its height. */
interface RecordContext {
  readonly docketNumber: number;
  /** The docket's timestamp. */
  readonly timestamp: string;
  readonly requireBoundTxId: boolean;
  /** With a cache, most of the work is saved. */
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

/** Judges a derived id: that of the envelope or, for publications, that of the published content. */
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

/** Judges that nothing is expired at the docket's time. A genesis never expires. */
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

/**
 * Judges that a genesis is only the first transaction of a register. The rules judge who may send control transactions.
 */
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
 * Judges id, sender, times and type of a sealed record. Payload and signatures are judged separately, where their cost
 * is acceptable.
 * @param payload read only where an id follows from it
 */
export function judgeRecord(record: SealedRecord, payload: Uint8Array, context: RecordContext): Violation[] {
  return [
    ...judgeIdentity(record, payload, context),
    ...judgeTimes(record, context.timestamp),
    ...judgeLabel(record, context.docketNumber),
  ];
}

import { isAlgorithm } from '../crypto/algorithm.ts';
import { canonicalBytes, canonicalJson } from '../encoding/jcs.ts';
import { fromUtf8 } from '../encoding/text.ts';
import { AppError } from '../errors/errors.ts';
import { leafHash } from './merkle.ts';
import { isTransactionType, type TransactionEnvelope, type TransactionSignature } from './transaction.ts';

/**
 * A transaction as it is sealed: its canonical JSON is a leaf of the docket's tree. Recipients and metadata are always
 * present; absent members are left out.
 */
export interface SealedRecord extends TransactionEnvelope {
  readonly txId: string;
  /** Bytes of the hashed payload. */
  readonly payloadSize: number;
  /** Address of the first signature's key. */
  readonly senderAddress: string;
  readonly recipients: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly signatures: readonly TransactionSignature[];
  /** Whether txId is the one derived from the envelope. */
  readonly bound: boolean;
}

interface RecordParts {
  readonly envelope: TransactionEnvelope;
  readonly txId: string;
  readonly payloadSize: number;
  readonly senderAddress: string;
  readonly signatures: readonly TransactionSignature[];
  readonly bound: boolean;
}

/** Builds the sealed record of a transaction, with its members in canonical order, which is fastest to write. */
export function buildRecord(parts: RecordParts): SealedRecord {
  const { envelope } = parts;
  return {
    actionId: envelope.actionId,
    blueprintId: envelope.blueprintId,
    bound: parts.bound,
    createdAt: envelope.createdAt,
    expiresAt: envelope.expiresAt,
    metadata: envelope.metadata ?? {},
    payloadHash: envelope.payloadHash,
    payloadSize: parts.payloadSize,
    previousTransactionId: envelope.previousTransactionId,
    recipients: envelope.recipients ?? [],
    registerId: envelope.registerId,
    senderAddress: parts.senderAddress,
    signatures: parts.signatures,
    txId: parts.txId,
    type: envelope.type,
  };
}

/** Canonical JSON bytes of a record: stored, served and hashed as they are. Throws like canonicalBytes. */
export function recordBytes(record: SealedRecord): Uint8Array {
  return canonicalBytes(record);
}

/** Leaf hash of a record's exact bytes, 32 bytes. */
export function recordLeaf(bytes: Uint8Array): Uint8Array {
  return leafHash(bytes);
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isHash: Check = (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const isOptionalText: Check = (value) => value === undefined || typeof value === 'string';

const isTexts: Check = (value) => Array.isArray(value) && value.every(isText);

function isTextMap(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isText)
  );
}

const SIGNATURE_CHECKS: Readonly<Record<keyof TransactionSignature, Check>> = {
  publicKey: isText,
  signatureValue: isText,
  algorithm: isAlgorithm,
};

const RECORD_CHECKS: Readonly<Record<keyof SealedRecord, Check>> = {
  txId: isHash,
  registerId: (value) => typeof value === 'string' && /^[0-9a-f]{32}$/.test(value),
  blueprintId: isOptionalText,
  actionId: isOptionalText,
  type: (value) => typeof value === 'string' && isTransactionType(value),
  payloadHash: isHash,
  payloadSize: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  previousTransactionId: (value) => value === undefined || isHash(value),
  createdAt: isText,
  expiresAt: isOptionalText,
  senderAddress: isText,
  recipients: isTexts,
  metadata: isTextMap,
  signatures: (value) =>
    Array.isArray(value) && value.length > 0 && value.every((each) => matches(each, SIGNATURE_CHECKS)),
  bound: (value) => typeof value === 'boolean',
};

function matches(value: unknown, checks: Readonly<Record<string, Check>>): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  if (!Object.keys(value).every((name) => Object.hasOwn(checks, name))) return false;
  const members = value as Readonly<Record<string, unknown>>;
  for (const name in checks) if (checks[name]?.(members[name]) !== true) return false;
  return true;
}

function isSealedRecord(value: unknown): value is SealedRecord {
  return matches(value, RECORD_CHECKS);
}

/**
 * Parses a record. The bytes must be its canonical JSON exactly: a record has one spelling. Shape only; hashes, keys
 * and signatures are not judged.
 * @throws AppError invalid VAL_STRUCT_012
 */
export function parseRecord(bytes: Uint8Array): SealedRecord {
  const text = fromUtf8(bytes);
  let value: unknown;
  try {
    value = text === undefined ? undefined : JSON.parse(text);
  } catch (cause) {
    throw new AppError('invalid', 'VAL_STRUCT_012', 'Record is not JSON', { cause });
  }
  if (!isSealedRecord(value))
    throw new AppError('invalid', 'VAL_STRUCT_012', 'Record has not the sealed shape');
  if (canonicalJson(value) !== text) {
    throw new AppError('invalid', 'VAL_STRUCT_012', 'Record is not in canonical form');
  }
  return value;
}

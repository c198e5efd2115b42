import type { Algorithm } from '../crypto/algorithm.ts';
import { sha256, sha256Hex } from '../crypto/hash.ts';
import { parsePublicKey } from '../crypto/public-key.ts';
import type { Verifier } from '../crypto/verify.ts';
import { decodeBase64Any } from '../encoding/base64.ts';
import { canonicalBytes, canonicalJson } from '../encoding/jcs.ts';
import { type JsonNode, minify, toValue } from '../encoding/json.ts';
import { utf8 } from '../encoding/text.ts';
import { isAppError } from '../errors/errors.ts';
import type { TxId } from './register-id.ts';

/** Types of sealed transactions. */
export const TRANSACTION_TYPES = [
  'Genesis',
  'Control',
  'Action',
  'Rejection',
  'Participant',
  'Revocation',
  'PresentationInitiated',
  'PresentationOutcome',
  'PresentationAbandoned',
  'CredentialStatusChange',
] as const;
export type TransactionType = (typeof TRANSACTION_TYPES)[number];

/** Limits that bound a record before anything is hashed. */
export const MAX_RECIPIENTS = 256;
export const MAX_SIGNATURES = 16;

const BOUND_DOMAIN = 'platform:tx:v1\n';

/** Form of the stored payload bytes: canonical JSON, or the client's own text without white space. */
type PayloadForm = 'jcs' | 'compact';

/** The members of a transaction besides its payload. Absent members are left out, never null. */
export interface TransactionEnvelope {
  readonly registerId: string;
  readonly blueprintId?: string | undefined;
  readonly actionId?: string | undefined;
  readonly type: TransactionType;
  /** Lower-case hex of SHA-256 over the payload bytes. */
  readonly payloadHash: string;
  readonly previousTransactionId?: string | undefined;
  /** Stored and hashed verbatim. */
  readonly createdAt: string;
  readonly expiresAt?: string | undefined;
  readonly recipients?: readonly string[] | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

export interface TransactionSignature {
  /** Standard padded base64 of the canonical key form. */
  readonly publicKey: string;
  /** Standard padded base64. */
  readonly signatureValue: string;
  readonly algorithm: Algorithm;
}

export interface PayloadMatch {
  /** The exact bytes that were hashed. They are stored, served and hashed again. */
  readonly bytes: Uint8Array;
  readonly form: PayloadForm;
}

/** Whether a text is one of the transaction types. */
export function isTransactionType(text: string): text is TransactionType {
  return TRANSACTION_TYPES.some((type) => type === text);
}

/** Hash of a payload in its canonical form, lower-case hex. Throws like canonicalBytes. */
export function payloadHash(payload: unknown): string {
  return sha256Hex(canonicalBytes(payload));
}

/**
 * Finds the bytes of a payload whose SHA-256 is the declared hash: canonical JSON, or the received text without white
 * space. Undefined when neither matches.
 */
export function matchPayload(payload: JsonNode, declaredHash: string): PayloadMatch | undefined {
  const jcs = canonicalBytes(toValue(payload));
  if (sha256Hex(jcs) === declaredHash) return { bytes: jcs, form: 'jcs' };
  const compact = utf8(minify(payload));
  return sha256Hex(compact) === declaredHash ? { bytes: compact, form: 'compact' } : undefined;
}

/**
 * The transaction id derived from the envelope: SHA-256 over `platform:tx:v1\n` and the canonical JSON of the envelope
 * with its signers. Recipients count when there are any, absent metadata counts as `{}`, priority and type never count.
 * @param signers public keys exactly as in the signatures, in their order
 */
export function boundTxId(envelope: TransactionEnvelope, signers: readonly string[]): TxId {
  const { recipients } = envelope;
  // In canonical order, which is fastest to write.
  const covered = {
    actionId: envelope.actionId,
    blueprintId: envelope.blueprintId,
    createdAt: envelope.createdAt,
    expiresAt: envelope.expiresAt,
    metadata: envelope.metadata ?? {},
    payloadHash: envelope.payloadHash,
    previousTransactionId: envelope.previousTransactionId,
    recipients: recipients === undefined || recipients.length === 0 ? undefined : recipients,
    registerId: envelope.registerId,
    signers,
  };
  return sha256Hex(BOUND_DOMAIN + canonicalJson(covered)) as TxId;
}

/** The text whose SHA-256 is signed: `{TxId}:{PayloadHash}` (specification document 2, section 2). */
export function signingText(txId: string, hashOfPayload: string): string {
  return `${txId}:${hashOfPayload}`;
}

/** SHA-256 of the signing text, 32 bytes. */
export function signingDigest(txId: string, hashOfPayload: string): Uint8Array {
  return sha256(signingText(txId, hashOfPayload));
}

/** Whether one signature of a transaction verifies; malformed base64 and keys are false. */
export function verifyTransactionSignature(
  verifier: Verifier,
  transaction: { readonly txId: string; readonly payloadHash: string },
  signature: TransactionSignature,
): boolean {
  try {
    return verifier.verifyPreimage({
      algorithm: signature.algorithm,
      publicKey: parsePublicKey(signature.algorithm, signature.publicKey),
      preimage: utf8(signingText(transaction.txId, transaction.payloadHash)),
      signature: decodeBase64Any(signature.signatureValue),
    });
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

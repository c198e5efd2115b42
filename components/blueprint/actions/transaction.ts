import { z } from 'zod';
import { ALGORITHMS, type Algorithm } from '#core/crypto/algorithm.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { buildRecord, recordBytes } from '#core/ledger/record.ts';
import { boundTxId, signingDigest, type TransactionEnvelope } from '#core/ledger/transaction.ts';
import { refusal } from '../errors.ts';
import type { SignedDraft } from '../operations/runner.ts';

const text = z.string();

/** A transaction before it is signed, as an operation keeps it. */
const draftSchema = z.object({
  envelope: z.object({
    registerId: text,
    blueprintId: text,
    actionId: text,
    type: z.enum(['Action', 'Rejection']),
    payloadHash: text,
    previousTransactionId: text,
    createdAt: text,
    expiresAt: text,
    recipients: z.array(text).optional(),
    metadata: z.record(text, text),
  }),
  txId: text,
  publicKey: text,
  algorithm: z.enum(ALGORITHMS),
  sender: text,
  /** Canonical JSON. */
  payload: text,
});

type TransactionDraft = z.output<typeof draftSchema>;

/** The members of a transaction that its sender decides. */
interface Parts {
  readonly envelope: TransactionDraft['envelope'];
  readonly key: { readonly publicKey: string; readonly algorithm: Algorithm };
  readonly sender: string;
  readonly payload: string;
}

/** Length of a signature of RSA-4096 in base64, the longest. */
const signatureLength = 684;

/**
 * The transaction of a step with its id, which binds its content and its signer.
 * @throws AppError too_large PAYLOAD_TOO_LARGE when record and payload are larger than the register takes
 */
export function draftTransaction({ envelope, key, sender, payload }: Parts, maxBytes: number): JsonObject {
  const txId = boundTxId(envelope, [key.publicKey]);
  const signature = { ...key, signatureValue: 'A'.repeat(signatureLength) };
  const payloadSize = Buffer.byteLength(payload);
  const record = { envelope, txId, payloadSize, senderAddress: sender, signatures: [signature], bound: true };
  const size = recordBytes(buildRecord(record)).length + payloadSize;
  if (size > maxBytes) throw refusal('PAYLOAD_TOO_LARGE', { details: { size, maxBytes } });
  return { envelope, txId, ...key, sender, payload };
}

/**
 * Signs a kept draft. The same draft gives the same bytes: signatures are deterministic (RFC 8032, RFC 6979, PKCS #1).
 * @param sign signs the digest of 32 bytes
 */
export async function signDraft(
  kept: unknown,
  sign: (digest: Uint8Array) => Promise<Uint8Array>,
): Promise<SignedDraft> {
  const { envelope, txId, publicKey, algorithm, payload } = draftSchema.parse(kept);
  const signature = await sign(signingDigest(txId, envelope.payloadHash));
  const members = submitted(envelope, txId, {
    PublicKey: publicKey,
    SignatureValue: encodeBase64(signature),
    Algorithm: algorithm,
  });
  const submission = Buffer.from(`${JSON.stringify(members).slice(0, -1)},"Payload":${payload}}`);
  return { submission, txId, expiresAt: new Date(envelope.expiresAt) };
}

/** The submitted transaction of specification document 2, section 2, without its payload. */
function submitted(envelope: TransactionEnvelope, txId: string, signature: object) {
  return {
    TransactionId: txId,
    RegisterId: envelope.registerId,
    BlueprintId: envelope.blueprintId,
    ActionId: envelope.actionId,
    PayloadHash: envelope.payloadHash,
    Signatures: [signature],
    CreatedAt: envelope.createdAt,
    ExpiresAt: envelope.expiresAt,
    PreviousTransactionId: envelope.previousTransactionId,
    Recipients: envelope.recipients,
    Metadata: envelope.metadata,
  };
}

const submissionSchema = z.object({
  PreviousTransactionId: text,
  CreatedAt: text,
  Metadata: z.object({ routing: text }),
  Payload: z.custom<JsonObject>((value) => typeof value === 'object' && value !== null),
});

/** The members of a signed transaction that this service reads again. */
export function readSubmission(submission: Buffer) {
  const { PreviousTransactionId, CreatedAt, Metadata, Payload } = submissionSchema.parse(
    JSON.parse(submission.toString()),
  );
  return {
    previousTxId: PreviousTransactionId,
    createdAt: CreatedAt,
    routing: Metadata.routing,
    payload: Payload,
  };
}

import { encodeBase64 } from '#core/encoding/base64.ts';
import type { TransactionEnvelope, TransactionSignature } from '#core/ledger/transaction.ts';

/** The generic submission to a validator (specification document 2, section 2). */
export interface Submission {
  readonly envelope: TransactionEnvelope;
  readonly txId: string;
  readonly signatures: readonly TransactionSignature[];
  /** JSON text of the payload; sent unchanged, so that the hashed bytes are the judged bytes */
  readonly payloadText: string;
}

/** JSON text of a submission, in the member names of the specification. */
export function submissionText(submission: Submission): string {
  const { envelope, txId, signatures, payloadText } = submission;
  const members = {
    TransactionId: txId,
    RegisterId: envelope.registerId,
    BlueprintId: envelope.blueprintId,
    ActionId: envelope.actionId,
    PayloadHash: envelope.payloadHash,
    Signatures: signatures.map((signature) => ({
      PublicKey: signature.publicKey,
      SignatureValue: signature.signatureValue,
      Algorithm: signature.algorithm,
    })),
    CreatedAt: envelope.createdAt,
    ExpiresAt: envelope.expiresAt,
    PreviousTransactionId: envelope.previousTransactionId,
    Recipients: envelope.recipients,
    Metadata: envelope.metadata ?? {},
  };
  return `${JSON.stringify(members).slice(0, -1)},"Payload":${payloadText}}`;
}

export function signatureOf(
  key: { readonly publicKey: string; readonly algorithm: TransactionSignature['algorithm'] },
  signature: Uint8Array,
): TransactionSignature {
  return { publicKey: key.publicKey, signatureValue: encodeBase64(signature), algorithm: key.algorithm };
}

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { walletAddress } from '#core/crypto/address.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { boundTxId, payloadHash, signingDigest, type TransactionEnvelope } from '#core/ledger/transaction.ts';

/** A key that no service holds. */
export interface OutsideKey {
  /** Standard base64 of the 32 raw bytes. */
  readonly publicKey: string;
  readonly address: string;
  readonly privateKey: KeyObject;
}

/** Body of POST /api/v1/transactions/validate. */
export interface Submission {
  readonly TransactionId: string;
  readonly RegisterId: string;
  readonly BlueprintId: string;
  readonly ActionId: string;
  readonly Payload: unknown;
  readonly PayloadHash: string;
  readonly Signatures: readonly { PublicKey: string; SignatureValue: string; Algorithm: string }[];
  readonly CreatedAt: string;
  readonly ExpiresAt?: string;
  readonly PreviousTransactionId?: string;
  readonly Metadata: Readonly<Record<string, string>>;
}

/** The members of a transaction that a test may choose; the others have valid values. */
export interface Content {
  readonly registerId: string;
  readonly payload: unknown;
  readonly previous?: string;
  readonly createdAtMs?: number;
  readonly expiresAtMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

export function createOutsideKey(): OutsideKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { x = '' } = publicKey.export({ format: 'jwk' });
  const raw = Buffer.from(x, 'base64url');
  return { publicKey: raw.toString('base64'), address: walletAddress('ED25519', raw), privateKey };
}

const ledgerTime = (ms: number): string => formatLedgerTimestamp(BigInt(ms) * 1000n);

/** Builds and signs a transaction like a client in any language. */
export function signSubmission(key: OutsideKey, content: Content): Submission {
  const envelope: TransactionEnvelope = {
    registerId: content.registerId,
    blueprintId: 'outside',
    actionId: '1',
    type: 'Action',
    payloadHash: payloadHash(content.payload),
    createdAt: ledgerTime(content.createdAtMs ?? Date.now()),
    metadata: content.metadata ?? {},
    ...(content.previous === undefined ? {} : { previousTransactionId: content.previous }),
    ...(content.expiresAtMs === undefined ? {} : { expiresAt: ledgerTime(content.expiresAtMs) }),
  };
  const txId = boundTxId(envelope, [key.publicKey]);
  const signature = sign(null, signingDigest(txId, envelope.payloadHash), key.privateKey);
  return {
    TransactionId: txId,
    RegisterId: content.registerId,
    BlueprintId: 'outside',
    ActionId: '1',
    Payload: content.payload,
    PayloadHash: envelope.payloadHash,
    Signatures: [
      { PublicKey: key.publicKey, SignatureValue: signature.toString('base64'), Algorithm: 'ED25519' },
    ],
    CreatedAt: envelope.createdAt,
    Metadata: envelope.metadata ?? {},
    ...(envelope.expiresAt === undefined ? {} : { ExpiresAt: envelope.expiresAt }),
    ...(envelope.previousTransactionId === undefined
      ? {}
      : { PreviousTransactionId: envelope.previousTransactionId }),
  };
}

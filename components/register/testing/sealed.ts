import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { buildRecord, recordBytes } from '#core/ledger/record.ts';
import { boundTxId, payloadHash, signingDigest, type TransactionEnvelope } from '#core/ledger/transaction.ts';
import type { DocketBundle, SealedTransaction } from '../ledger/dockets/docket.ts';
import { type TestKey, testKey } from './keys.ts';

const sender = testKey(1);

export interface TransactionOptions extends Partial<TransactionEnvelope> {
  readonly registerId: string;
  readonly payload: unknown;
  readonly key?: TestKey;
}

/** A sealed transaction signed by its sender. */
export function transaction({
  payload,
  key = sender,
  ...overrides
}: TransactionOptions): SealedTransaction & { readonly txId: string } {
  const envelope: TransactionEnvelope = {
    blueprintId: 'loan',
    actionId: '0',
    type: 'Action',
    payloadHash: payloadHash(payload),
    createdAt: formatLedgerTimestamp(BigInt(Date.now()) * 1000n),
    ...overrides,
  };
  const txId = boundTxId(envelope, [key.publicKey]);
  const bytes = canonicalBytes(payload);
  const signature = key.signer.signDigest(signingDigest(txId, envelope.payloadHash));
  const record = buildRecord({
    envelope,
    txId,
    payloadSize: bytes.length,
    senderAddress: key.walletAddress,
    signatures: [{ publicKey: key.publicKey, signatureValue: encodeBase64(signature), algorithm: 'ED25519' }],
    bound: true,
  });
  return { txId, record: recordBytes(record), payload: bytes, payloadHashForm: 'jcs' };
}

/** A docket as the body of POST /dockets. */
export function bodyOf({ header, certificate, transactions, attestations }: DocketBundle) {
  const { registerId, ...rest } = header;
  return {
    ...rest,
    certificate,
    consensusVotes: attestations,
    transactions: transactions.map((one) => ({
      record: encodeBase64(one.record),
      payload: encodeBase64(one.payload),
      payloadHashForm: one.payloadHashForm,
    })),
  };
}

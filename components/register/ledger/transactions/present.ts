import type { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { apiTimestamp, findTimestamp, ticksToMs } from '#core/encoding/timestamp.ts';
import { transactionDid } from '#core/ledger/did.ts';
import { parseRecord, type SealedRecord } from '#core/ledger/record.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import type { UnsealedTransaction } from '../../clients/validators.ts';
import type { SealedItem, SealedRow } from '../sealed/rows/store.ts';
import type { transactionItemSchema, transactionSchema, unsealedTransactionSchema } from './schemas.ts';

function recordFields(record: SealedRecord) {
  const ticks = findTimestamp(record.createdAt);
  return {
    transactionId: record.txId,
    txId: record.txId,
    registerId: record.registerId,
    transactionType: record.type,
    senderAddress: record.senderAddress,
    recipients: record.recipients,
    timestamp: ticks === undefined ? record.createdAt : apiTimestamp(ticksToMs(ticks)),
    createdAt: record.createdAt,
    ...(record.expiresAt !== undefined && { expiresAt: record.expiresAt }),
    ...(record.blueprintId !== undefined && { blueprintId: record.blueprintId }),
    ...(record.actionId !== undefined && { actionId: record.actionId }),
    previousTransactionId: record.previousTransactionId ?? null,
    payloadHash: record.payloadHash,
    payloadSize: record.payloadSize,
    metadata: record.metadata,
    signatures: record.signatures,
    bound: record.bound,
    did: transactionDid(record.registerId, record.txId),
  };
}

/** A sealed transaction in a list: everything but its payload. */
export function presentItem(row: SealedItem): ReadonlyDeep<z.output<typeof transactionItemSchema>> {
  return {
    ...recordFields(parseRecord(row.record)),
    payloadHashForm: row.payloadHashForm,
    docketId: String(row.docketNumber),
    docketNumber: row.docketNumber,
    position: row.position,
    status: 'confirmed',
  };
}

/** A sealed transaction; `payload` is the base64 of the exact hashed bytes. */
export function presentSealed(row: SealedRow): ReadonlyDeep<z.output<typeof transactionSchema>> {
  return { ...presentItem(row), payload: encodeBase64(row.payload) };
}

/** A transaction that is not sealed, as a validator reports it. */
export function presentUnsealed(
  registerId: string,
  transaction: UnsealedTransaction,
): ReadonlyDeep<z.output<typeof unsealedTransactionSchema>> {
  const location = { docketId: null, docketNumber: null, status: transaction.status };
  if (transaction.status === 'pending' && transaction.record.length > 0) {
    return { ...recordFields(parseRecord(transaction.record)), ...location };
  }
  const { txId } = transaction;
  return {
    transactionId: txId,
    txId,
    registerId,
    did: transactionDid(registerId, txId),
    ...location,
    ...(transaction.status === 'rejected' && {
      rejection: {
        code: transaction.rejectionCode,
        message: transaction.rejectionMessage,
        at: apiTimestamp(transaction.atMs),
      },
    }),
  };
}

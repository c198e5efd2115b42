import type { z } from 'zod';
import { parseRecord } from '#core/ledger/record.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { waitingSchema } from './schemas.ts';

/** A waiting transaction as one validator reports it. */
interface WaitingTransaction {
  /** JCS bytes of the record */
  readonly record: Uint8Array;
  readonly addedAtMs: number;
  readonly expiresAtMs: number;
}

export interface WaitingPage {
  readonly transactions: readonly WaitingTransaction[];
  readonly total: number;
}

export interface WaitingWindow {
  readonly offset: number;
  readonly limit: number;
}

/** The waiting transactions of a register, in the order in which they may be sealed. */
export function listWaiting(
  { pool }: Pick<RegisterChain, 'pool'>,
  { offset, limit }: WaitingWindow,
): WaitingPage {
  const transactions: WaitingTransaction[] = [];
  let at = 0;
  for (const { record, addedAtMs, expiresAtMs } of pool.waiting()) {
    if (transactions.length >= limit) break;
    if (at >= offset) transactions.push({ record, addedAtMs, expiresAtMs });
    at += 1;
  }
  return { transactions, total: pool.size };
}

/** One transaction of `GET /api/validation/transactions/{registerId}`. Throws AppError for a malformed record. */
export function presentWaiting({
  record,
  addedAtMs,
  expiresAtMs,
}: WaitingTransaction): ReadonlyDeep<z.output<typeof waitingSchema>> {
  const { txId, type, previousTransactionId, blueprintId, actionId, ...sealed } = parseRecord(record);
  return {
    transactionId: txId,
    txId,
    registerId: sealed.registerId,
    transactionType: type,
    senderAddress: sealed.senderAddress,
    recipients: sealed.recipients,
    timestamp: sealed.createdAt,
    docketId: null,
    docketNumber: null,
    status: 'pending',
    previousTransactionId: previousTransactionId ?? null,
    blueprintId: blueprintId ?? null,
    actionId: actionId ?? null,
    payloadHash: sealed.payloadHash,
    payloadSize: sealed.payloadSize,
    metadata: sealed.metadata,
    addedAt: new Date(addedAtMs).toISOString(),
    // Genesis does not expire.
    expiresAt: type === 'Genesis' ? null : new Date(expiresAtMs).toISOString(),
  };
}

import { findTimestamp, TICKS_PER_MILLISECOND } from '#core/encoding/timestamp.ts';
import type { Violation } from '#core/errors/errors.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import { type DocketHead, judgeHeader, judgeSuccession } from '#core/ledger/docket.ts';
import type { RegisterState } from '../sealing/state.ts';
import type { Docket } from './docket.ts';

/**
 * Judges a proposed docket against the state before it (notes/ledger.md 4.3, row Prevote): a function of the docket and
 * the state alone, so that every member judges alike. Transactions must have been verified and looked up by then.
 */
export function judgeDocket(state: RegisterState, { header, transactions }: Docket): Violation[] {
  const head: DocketHead | undefined =
    state.height === 0
      ? undefined
      : { docketNumber: state.height - 1, hash: state.headHash, timestamp: state.headTimestamp };
  const found = judgeSuccession(header, head);
  if (found.length > 0) return found;
  if (header.registerId !== state.registerId) return [validationViolation('VAL_CHAIN_002', 'registerId')];
  if (header.validatorSetHash !== state.membersHash)
    return [validationViolation('VAL_CERT_001', 'validatorSetHash')];
  const leaves = transactions.map((transaction) => transaction.leaf);
  return [
    ...judgeHeader(header, leaves, state.log),
    ...judgeLimits(state, header),
    ...judgeOrder(header, transactions),
    ...judgeReplays(transactions),
  ];
}

function judgeLimits(state: RegisterState, header: Docket['header']): Violation[] {
  const { maxTransactionsPerDocket, maxDocketBytes } = state.rules;
  const fits = header.transactionIds.length <= maxTransactionsPerDocket && header.sizeBytes <= maxDocketBytes;
  return fits
    ? []
    : [validationViolation('VAL_SIZE_001', 'sizeBytes', 'The docket is larger than the policy allows')];
}

/** Parents before children, one successor each, nothing expired at the docket's own time. */
function judgeOrder(header: Docket['header'], transactions: Docket['transactions']): Violation[] {
  const found: Violation[] = [];
  const atTicks = findTimestamp(header.timestamp) ?? 0n;
  const ids = new Set(header.transactionIds);
  const seen = new Set<string>();
  const followed = new Set<string>();
  for (const transaction of transactions) {
    const { txId, previousTransactionId: previous, exclusivePredecessor } = transaction;
    if (previous !== undefined && ids.has(previous) && !seen.has(previous)) {
      found.push(validationViolation('VAL_CHAIN_001', txId, 'A child stands before its parent'));
    }
    if (previous !== undefined && exclusivePredecessor && followed.has(previous)) {
      found.push(validationViolation('VAL_CHAIN_FORK', txId));
    }
    if (previous !== undefined) followed.add(previous);
    if (header.docketNumber > 0 && BigInt(transaction.expiresAtMs) * TICKS_PER_MILLISECOND <= atTicks) {
      found.push(validationViolation('VAL_TIME_003', txId));
    }
    seen.add(txId);
  }
  return found;
}

/** No two Actions that repeat each other (L-39). */
function judgeReplays(transactions: Docket['transactions']): Violation[] {
  const seen = new Set<string>();
  return transactions.flatMap(({ txId, replayKey }) => {
    if (replayKey === undefined) return [];
    if (seen.has(replayKey)) return validationViolation('VAL_REPLAY_001', txId);
    seen.add(replayKey);
    return [];
  });
}

/** Proposer-based timestamps: whether a new proposal's time is plausible when it arrives. Genesis is exempt (D13). */
export function isTimely(state: RegisterState, timestamp: string, nowMs: number): boolean {
  if (state.height === 0) return true;
  const ticks = findTimestamp(timestamp);
  if (ticks === undefined) return false;
  const ms = Number(ticks / TICKS_PER_MILLISECOND);
  const { precisionMs, messageDelayMs } = state.rules;
  return nowMs - messageDelayMs - precisionMs <= ms && ms <= nowMs + precisionMs;
}

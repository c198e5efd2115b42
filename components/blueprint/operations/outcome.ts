import { AppError } from '#core/errors/errors.ts';
import type { SubmissionAnswer } from '../clients/ledger.ts';
import { refusal } from '../errors.ts';

/** A transaction with the id of ours is ours: the id binds its content. */
const ownCodes: readonly string[] = ['TX_CONFLICT'];

/**
 * What a validator's answer says of the transaction.
 * @throws AppError unavailable when it shall be sent again, unprocessable when it was refused
 */
export function outcomeOf({
  status,
  code,
  message,
  retryAfterSeconds,
}: SubmissionAnswer): 'accepted' | 'sealed' | 'fork' {
  if (status === 200 || ownCodes.includes(code)) return 'accepted';
  if (code === 'VAL_CHAIN_004') return 'sealed';
  if (code === 'VAL_CHAIN_FORK') return 'fork';
  if (status === 429 || status >= 500 || code === 'MEMPOOL_FULL')
    throw refusal('REGISTER_UNAVAILABLE', { retryAfterSeconds: Math.max(1, retryAfterSeconds) });
  if (code.startsWith('VAL_')) throw new AppError('unprocessable', code, message);
  throw refusal('SUBMISSION_REFUSED', { message: `${code}: ${message}`, details: { reason: code } });
}

import { STATUS_CODES } from 'node:http';
import { type AppError, isAppError, type Violation } from '#core/errors/errors.ts';
import { elsewhereHeader, kindStatus } from '#kit/http/http.ts';
import type { PoolLimit } from '../../chain/pool/pool.ts';
import { failure } from '../../errors.ts';

/** The answer to a submission. Status and body are the same over HTTP and gRPC. */
export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds: number;
  /** This validator did nothing, and another validator may accept the submission. */
  readonly elsewhere?: true;
}

export interface Admitted {
  readonly transactionId: string;
  readonly registerId: string;
  readonly addedAtMs: number;
  /** False for an identical resubmission. */
  readonly added: boolean;
}

const path = '/api/v1/transactions/validate';

export function admittedAnswer(admitted: Admitted): Answer {
  const { added, transactionId, registerId, addedAtMs } = admitted;
  const addedAt = new Date(addedAtMs).toISOString();
  const known = added ? {} : { alreadyKnown: true };
  return {
    status: 200,
    body: { isValid: true, added, ...known, transactionId, registerId, addedAt },
    retryAfterSeconds: 0,
  };
}

/** Headers beside the body of an answer over HTTP. */
export function answerHeaders({ retryAfterSeconds, elsewhere }: Answer): Record<string, string> {
  return {
    ...(retryAfterSeconds > 0 && { 'retry-after': String(retryAfterSeconds) }),
    ...(elsewhere === true && { [elsewhereHeader]: 'true' }),
  };
}

/** Shows only what a client may see: the text of internal errors is withheld. */
export function refusalAnswer(error: unknown, nowMs: number): Answer {
  const refusal = isAppError(error) && error.kind !== 'internal' ? error : undefined;
  const status = refusal === undefined ? 500 : kindStatus[refusal.kind];
  const code = refusal?.code ?? 'INTERNAL_ERROR';
  const message = refusal?.message ?? 'An internal error occurred.';
  const violations: readonly Violation[] = refusal?.violations ?? [{ code, message, severity: 'Error' }];
  return {
    status,
    body: {
      ...refusal?.details,
      type: `urn:platform:error:${code.toLowerCase().replaceAll('_', '-')}`,
      title: STATUS_CODES[status] ?? 'Error',
      status,
      detail: message,
      instance: path,
      error: message,
      code,
      timestamp: new Date(nowMs).toISOString(),
      path,
      isValid: code === 'TX_CONFLICT' || code === 'MEMPOOL_FULL',
      added: false,
      errors: violations.map(({ code: each, message: text, field, severity }) => ({
        code: each,
        message: text,
        ...(field === undefined ? {} : { field }),
        severity,
      })),
    },
    retryAfterSeconds: refusal?.retryAfterSeconds ?? 0,
    ...(refusal?.elsewhere === true && { elsewhere: refusal.elsewhere }),
  };
}

export function conflict(txId: string): AppError {
  return failure('TX_CONFLICT', { message: `Another transaction has the id ${txId}` });
}

const fullMessages: Readonly<Record<PoolLimit, string>> = {
  count: 'The register has no room for more transactions',
  bytes: 'The register has no room for more transactions',
  sender: 'The sender has too many transactions waiting',
  total: 'The validator has no room for more transactions',
};

export function poolFull(bound: PoolLimit): AppError {
  const options = { retryAfterSeconds: 1, details: { bound } };
  return failure('MEMPOOL_FULL', { ...options, message: fullMessages[bound] });
}

/** A step is refused, to be retried, while its publication cannot be read. */
export function unreadable(cause: unknown): AppError {
  const message = 'The publication of the step cannot be read from the register service; retry';
  return failure('VAL_CHAIN_TRANSIENT', { message, cause, retryAfterSeconds: 1 });
}

/** A refusal that may be wrong here, since later dockets are stored already. */
export function behind(registerId: string): AppError {
  const message = `Register ${registerId} has stored dockets that this validator has not decided yet; retry`;
  return failure('REGISTER_BEHIND', { message, retryAfterSeconds: 1 });
}

import { AppError } from '#core/errors/errors.ts';
import type { Reason } from './reasons.ts';

interface RequeueErrorOptions {
  /** `stalled` when a person must act; `reconciling` when absent. */
  readonly state?: 'reconciling' | 'stalled';
  /** Delay of the retry. Absent: it counts as a failure and is retried with backoff. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** A reconcile cannot continue; the object's conditions give the reason. */
export class RequeueError extends AppError {
  readonly reason: Reason;
  readonly state: 'reconciling' | 'stalled';
  readonly retryAfterMs: number | undefined;

  constructor(reason: Reason, message: string, options: RequeueErrorOptions = {}) {
    super('conflict', 'RECONCILE_BLOCKED', message, { cause: options.cause });
    this.name = 'RequeueError';
    this.reason = reason;
    this.state = options.state ?? 'reconciling';
    this.retryAfterMs = options.retryAfterMs;
  }
}

import { AppError, isAppError } from '#core/errors/errors.ts';
import type { Outcome } from '../../api/conditions.ts';
import type { Reason } from '../../api/reasons.ts';
import { AdoptionRefused, isApiError, NotLeader, TerminalError } from '../../kube/errors.ts';

export interface BlockedOptions {
  /** `stalled` when nothing goes on until somebody acts; `reconciling` when absent. */
  readonly state?: 'reconciling' | 'stalled';
  /** When to look again. Absent: it counts as a failure, and the pauses grow. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** A reconcile cannot go on, for a reason that the object's conditions tell. */
export class Blocked extends AppError {
  readonly reason: Reason;
  readonly state: 'reconciling' | 'stalled';
  readonly retryAfterMs: number | undefined;

  constructor(reason: Reason, message: string, options: BlockedOptions = {}) {
    super('conflict', 'RECONCILE_BLOCKED', message, { cause: options.cause });
    this.name = 'Blocked';
    this.reason = reason;
    this.state = options.state ?? 'reconciling';
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Whether a service could not be asked or did not answer: who waits may be served later. */
export function isAway(error: unknown): boolean {
  return isAppError(error) && ['unavailable', 'timeout', 'bad_gateway'].includes(error.kind);
}

/**
 * What conditions say about an error of a reconcile; undefined for what the next try settles by itself (a cache that
 * is behind) and for what nobody may write any more.
 */
export function outcomeOf(error: unknown, failures: number): Outcome | undefined {
  if (error instanceof NotLeader) return undefined;
  if (error instanceof Blocked) return { state: error.state, reason: error.reason, message: error.message };
  if (error instanceof AdoptionRefused) {
    return { state: 'stalled', reason: 'AdoptionRefused', message: error.message };
  }
  if (isApiError(error)) return outcomeOfRefusal(error.reason, error.message, failures);
  if (!isAppError(error)) {
    return retry('The operator hit an error of its own; its log has the details');
  }
  // a start: the list is on its way
  if (error.code === 'CACHE_NOT_SYNCED') return undefined;
  if (error.code === 'CHILD_TERMINATING') {
    return { state: 'reconciling', reason: 'Progressing', message: error.message };
  }
  if (error instanceof TerminalError) {
    return { state: 'stalled', reason: 'ProgressingWithRetry', message: error.message };
  }
  return isAway(error)
    ? { state: 'reconciling', reason: 'DependencyNotReady', message: error.message }
    : retry(error.message);
}

function retry(message: string): Outcome {
  return { state: 'reconciling', reason: 'ProgressingWithRetry', message };
}

/** Conflicts come from a cache that is behind: the first few say nothing. */
const QUIET_CONFLICTS = 3;

function outcomeOfRefusal(reason: string, message: string, failures: number): Outcome | undefined {
  const isStale = reason === 'Conflict' || reason === 'NotFound';
  if (isStale && failures < QUIET_CONFLICTS) return undefined;
  if (reason === 'Forbidden') return retry(`The operator's role does not allow ${message}`);
  return retry(message);
}

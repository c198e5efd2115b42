import { isAppError } from '#core/errors/errors.ts';
import type { Outcome } from '../../api/conditions.ts';
import { RequeueError } from '../../api/requeue-error.ts';
import { AdoptionRefused, isApiError, NotLeader, TerminalError } from '../../kube/errors.ts';

/** Whether a service could not be reached or did not answer, so that a retry may succeed. */
export function isServiceUnavailable(error: unknown): boolean {
  return isAppError(error) && ['unavailable', 'timeout', 'bad_gateway'].includes(error.kind);
}

/**
 * The outcome of an error for the conditions. Undefined for errors that the next reconcile resolves (a stale cache) and for
 * a lost lease, after which no status may be written.
 */
export function outcomeOf(error: unknown, failures: number): Outcome | undefined {
  if (error instanceof NotLeader) return undefined;
  if (error instanceof RequeueError)
    return { state: error.state, reason: error.reason, message: error.message };
  if (error instanceof AdoptionRefused) {
    return { state: 'stalled', reason: 'AdoptionRefused', message: error.message };
  }
  if (isApiError(error)) return outcomeOfRefusal(error.reason, error.message, failures);
  if (!isAppError(error)) {
    return retry('The operator failed with an unexpected error; its log has the details');
  }
  // at a start the lists are not complete yet
  if (error.code === 'CACHE_NOT_SYNCED') return undefined;
  if (error.code === 'CHILD_TERMINATING') {
    return { state: 'reconciling', reason: 'Progressing', message: error.message };
  }
  if (error instanceof TerminalError) {
    return { state: 'stalled', reason: 'ProgressingWithRetry', message: error.message };
  }
  return isServiceUnavailable(error)
    ? { state: 'reconciling', reason: 'DependencyNotReady', message: error.message }
    : retry(error.message);
}

function retry(message: string): Outcome {
  return { state: 'reconciling', reason: 'ProgressingWithRetry', message };
}

/** Conflicts come from a stale cache; the first ones are not reported. */
const quietConflicts = 3;

function outcomeOfRefusal(reason: string, message: string, failures: number): Outcome | undefined {
  const isStale = reason === 'Conflict' || reason === 'NotFound';
  if (isStale && failures < quietConflicts) return undefined;
  if (reason === 'Forbidden') return retry(`The operator's role does not allow ${message}; extend its role`);
  return retry(message);
}

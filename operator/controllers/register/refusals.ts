import type { Outcome } from '../../api/conditions.ts';
import { reconciling, stalled } from '../../plan/outcome.ts';
import { ServiceRefusal } from '../../platform/refusals.ts';

const adoption = [
  'REGISTER_BOUND',
  'REGISTER_OF_ANOTHER_ORGANIZATION',
  'UID_BOUND',
  'REGISTER_EXISTS',
] as const;
const gone = ['REGISTER_DELETED', 'REGISTER_NOT_FOUND'] as const;

/** The outcome of a refused creation; undefined when a retry may succeed. */
export function outcomeOfCreation(error: unknown): Outcome | undefined {
  if (!(error instanceof ServiceRefusal)) return undefined;
  const { message } = error;
  if (error.is(...adoption)) return stalled('AdoptionRefused', message);
  if (error.is(...gone)) {
    return stalled('InvalidReference', `${message}; correct spec.registerId, or delete this object`);
  }
  if (error.is('OWNER_WALLET_REQUIRED', 'VALIDATOR_SET_UNAVAILABLE')) {
    return reconciling('DependencyNotReady', message);
  }
  const isFinal = ['invalid', 'unprocessable', 'conflict', 'forbidden'].includes(error.kind);
  return isFinal && error.code !== 'IDEMPOTENCY_IN_PROGRESS' ? stalled('PolicyRejected', message) : undefined;
}

/** Meaning of a refused change. */
type ChangeRefusal =
  /** The change is pending or already made; the current state decides. */
  | 'outdated'
  /** The ledger refuses the change; it is not requested again for a while. */
  | 'refused'
  /** There was no refusal; the change is retried. */
  | 'unavailable';

const outdated = [
  'CHANGE_OUTSTANDING',
  'POLICY_VERSION_CONFLICT',
  'DEV_MODE_ALREADY_DISABLED',
  'PROPOSAL_CLOSED',
  'IDEMPOTENCY_IN_PROGRESS',
] as const;

/** Classifies the error of a change. */
export function judgeChange(error: unknown): ChangeRefusal {
  if (!(error instanceof ServiceRefusal)) return 'unavailable';
  if (error.is(...outdated)) return 'outdated';
  const isRefused = ['invalid', 'forbidden', 'not_found', 'conflict', 'gone', 'unprocessable'].includes(
    error.kind,
  );
  return isRefused ? 'refused' : 'unavailable';
}

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

/** What a refusal to make a register means; undefined when the next try may succeed. */
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

/** What a refusal of one change means. */
export type ChangeRefusal =
  /** It is under way, or was made meanwhile: what there is now decides. */
  | 'outdated'
  /** The ledger says no to this change; it is not asked for again for a while. */
  | 'refused'
  /** Nobody said no: it is tried again. */
  | 'unavailable';

const outdated = [
  'CHANGE_OUTSTANDING',
  'POLICY_VERSION_CONFLICT',
  'DEV_MODE_ALREADY_DISABLED',
  'PROPOSAL_CLOSED',
  'IDEMPOTENCY_IN_PROGRESS',
] as const;

/** Judges what came of a change that was not accepted. */
export function judgeChange(error: unknown): ChangeRefusal {
  if (!(error instanceof ServiceRefusal)) return 'unavailable';
  if (error.is(...outdated)) return 'outdated';
  const isSaidNo = ['invalid', 'forbidden', 'not_found', 'conflict', 'gone', 'unprocessable'].includes(
    error.kind,
  );
  return isSaidNo ? 'refused' : 'unavailable';
}

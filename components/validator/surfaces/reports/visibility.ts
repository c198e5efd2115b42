import { isAppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide } from '#core/identity/policies.ts';
import type { CollectedReport } from './collect-reports.ts';

export interface Visibility {
  /** Whether an organisation subscribes to a register. */
  isSubscribed(organizationId: string, registerId: string): Promise<boolean>;
}

/** Visibility of many registers at once. */
export interface VisibilityOfMany {
  /** Of some registers, those that an organisation subscribes to; deleted ones are left out. */
  listSubscribed(organizationId: string, registerIds: readonly string[]): Promise<readonly string[]>;
}

/** Whether a caller sees every register: system administrators and services do. */
function canSeeAll(caller: Caller): boolean {
  return caller.kind === 'service' || decide('RequireSystemAdmin', caller) === 'allow';
}

/**
 * The registers in the reports that the caller may see: a user sees those of their organisation. One request, however many
 * registers there are.
 */
export async function visibleTo(
  deps: VisibilityOfMany,
  caller: Caller,
  collected: readonly CollectedReport[],
): Promise<ReadonlySet<string>> {
  const reported = collected
    .flatMap(({ report }) => report?.registers ?? [])
    .map(({ registerId }) => registerId);
  const ids = [...new Set(reported)];
  if (canSeeAll(caller)) return new Set(ids);
  const { organizationId } = caller;
  if (organizationId === undefined || ids.length === 0) return new Set();
  const subscribed = new Set(await deps.listSubscribed(organizationId, ids));
  return new Set(ids.filter((registerId) => subscribed.has(registerId)));
}

/**
 * Whether a caller may see a register. Members report a deleted register until they restart; to users it no longer exists.
 */
export async function canSee(deps: Visibility, caller: Caller, registerId: string): Promise<boolean> {
  if (canSeeAll(caller)) return true;
  const { organizationId } = caller;
  if (organizationId === undefined) return false;
  try {
    return await deps.isSubscribed(organizationId, registerId);
  } catch (error) {
    if (isAppError(error, 'not_found')) return false;
    throw error;
  }
}

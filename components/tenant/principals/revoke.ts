import { findServiceName } from '#core/identity/services.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { appendAudit } from '../audit/store.ts';
import { refusal } from '../errors.ts';
import { endTokens } from '../tokens/end.ts';
import { freshMs } from './directory.ts';
import { lockPrincipal, setPrincipalStatus } from './store.ts';
import type { UpsertDeps } from './upsert.ts';

export interface RevokePrincipalDeps extends UpsertDeps {
  /** Tells every service that there are new revocations. */
  readonly notifyRevocations: () => void;
}

/** Clocks of replicas differ by less. */
const skewMs = 3_000;

/**
 * Ends a validator's principal: its tokens die and it gets no new ones. The row stays, so that nothing seeds it again.
 *
 * @returns false when there is none, or it was revoked before.
 * @throws PRINCIPAL_PROTECTED for a service that is no member of a set
 */
export async function revokePrincipal(
  deps: RevokePrincipalDeps,
  clientId: string,
  by: string,
): Promise<boolean> {
  if (findServiceName(clientId) !== 'validator') throw refusal('PRINCIPAL_PROTECTED');
  const revoked = await deps.db.transact(async (tx) => {
    const stored = await lockPrincipal(tx, clientId);
    if (stored === undefined || stored.status === 'Revoked') return false;
    const { principalId } = stored;
    const occurredAtMs = deps.clock.nowMs();
    await setPrincipalStatus(tx, clientId, 'Revoked');
    // Another replica mints a little longer from what it remembers; those tokens are dead too.
    const atMs = occurredAtMs + freshMs + skewMs;
    await endTokens(tx, { kind: 'identity', key: principalId, reason: 'principal-revoked', atMs });
    await appendAudit(tx, {
      organizationId: SYSTEM_ORGANIZATION_ID,
      occurredAtMs,
      type: 'ServicePrincipalRevoked',
      success: true,
      details: { clientId, principalId, by },
    });
    return true;
  });
  if (revoked) {
    deps.principals.invalidate();
    deps.notify();
    deps.notifyRevocations();
  }
  return revoked;
}

import { findServiceName } from '#core/identity/services.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { appendAudit } from '../../audit/log/store.ts';
import { refusal } from '../../errors.ts';
import { endTokens } from '../../tokens/sessions/end-tokens.ts';
import { freshMs } from './directory.ts';
import { lockPrincipal, setPrincipalStatus } from './store.ts';
import type { UpsertDeps } from './upsert.ts';

export interface RevokePrincipalDeps extends UpsertDeps {
  /** Notifies all services of new revocations. */
  readonly notifyRevocations: () => void;
}

/** Upper bound of the clock difference between replicas. */
const skewMs = 3_000;

/**
 * Revokes the principal of a validator: its tokens end and it gets no new ones. The row stays, so that seeding does not
 * create it again.
 *
 * @returns false when the principal does not exist or is already revoked.
 * @throws PRINCIPAL_PROTECTED for a principal that is not a validator
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
    // Another replica may mint from its cache for a short time; the revocation covers those tokens too.
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

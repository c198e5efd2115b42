import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Origin } from '../../requests/origin.ts';
import type { PrincipalDirectory } from './directory.ts';
import { hashSecret, makeSecret, secretMatches } from './principal.ts';
import { findPrincipal, replaceSecret } from './store.ts';

export interface RotateDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly principals: PrincipalDirectory;
  readonly sharedSecretsDisabled: boolean;
  /** Notifies the other replicas that a principal changed. */
  readonly notify: () => void;
}

/**
 * Replaces the secret of a client that presents the current one, which becomes invalid at once.
 * @throws SHARED_SECRETS_DISABLED, INVALID_CLIENT
 */
export async function rotateSecret(
  deps: RotateDeps,
  request: { readonly clientId: string; readonly currentSecret: string; readonly origin: Origin },
): Promise<string> {
  if (deps.sharedSecretsDisabled) throw refusal('SHARED_SECRETS_DISABLED');
  const { clientId, currentSecret } = request;
  const newSecret = makeSecret();
  const atMs = deps.clock.nowMs();
  const replaced = await deps.db.transact(async (tx) => {
    const principal = await findPrincipal(tx, clientId);
    if (!secretMatches(principal, currentSecret) || principal?.isActive !== true) return false;
    const change = { from: hashSecret(currentSecret), to: hashSecret(newSecret), atMs };
    if (!(await replaceSecret(tx, clientId, change))) return false;
    await appendAudit(tx, {
      organizationId: SYSTEM_ORGANIZATION_ID,
      occurredAtMs: atMs,
      type: 'ServicePrincipalSecretRotated',
      origin: request.origin,
      success: true,
      details: { clientId },
    });
    return true;
  });
  if (!replaced) throw refusal('INVALID_CLIENT');
  deps.principals.invalidate();
  deps.notify();
  return newSecret;
}

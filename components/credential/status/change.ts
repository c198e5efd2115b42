import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { insertEvents } from '../audit/store.ts';
import type { CredentialDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { endOfferTokens } from '../issuer/authorization/store.ts';
import type { Meter } from '../metrics.ts';
import { type CredentialStatus, mayBecome, withStatus } from './statuses.ts';
import { type IssuedCredential, lockCredential, lockStatuses, writeStatus } from './store.ts';

export interface ChangeStatusDeps {
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
  readonly meter: Meter;
}

interface StatusChange {
  readonly credentialId: string;
  readonly to: CredentialStatus;
  readonly reason: string;
}

/**
 * Suspends, reinstates or revokes a credential. The list that is signed next shows it. While a credential is suspended no
 * copies of it are issued, and revocation ends the tokens of its offer.
 * @throws AppError not_found CREDENTIAL_NOT_FOUND, also for credentials of organisations that the caller does not
 * administer; conflict STATUS_TRANSITION, CREDENTIAL_WITHOUT_STATUS
 */
export async function changeStatus(
  { db, clock, meter }: ChangeStatusDeps,
  caller: Caller,
  change: StatusChange,
) {
  const at = new Date(clock.nowMs());
  const changed = await db.transact(async (tx) => {
    const credential = await lockCredential(tx, change.credentialId);
    if (credential === undefined || !mayChange(caller, credential)) throw refusal('CREDENTIAL_NOT_FOUND');
    const { listId, listIndex, status } = credential;
    if (listId === null || listIndex === null) throw refusal('CREDENTIAL_WITHOUT_STATUS');
    if (!mayBecome(status, change.to))
      throw refusal('STATUS_TRANSITION', {
        message: `a credential that is ${status} cannot become ${change.to}`,
      });
    const statuses = withStatus(await lockStatuses(tx, listId), listIndex, change.to);
    await writeStatus(
      tx,
      { id: credential.id, status: change.to, reason: change.reason, at },
      { id: listId, statuses },
    );
    if (change.to === 'Revoked') await endOfferTokens(tx, credential.offerId);
    const event = {
      organizationId: credential.organizationId,
      kind: 'statusChanged',
      resourceId: credential.id,
      detail: change.to,
      platformUserId: caller.platformUserId,
      at,
    } as const;
    await insertEvents(tx, [event]);
    return {
      credentialId: credential.id,
      status: change.to,
      listId,
      index: listIndex,
      changedAt: at.toISOString(),
    };
  });
  meter.statusChanged(change.to);
  return changed;
}

/** Administrators of the issuing organisation, and services. */
function mayChange(caller: Caller, { organizationId }: IssuedCredential): boolean {
  if (caller.kind === 'service') return caller.delegation === undefined;
  return caller.organizationId === organizationId && caller.roles.includes('Administrator');
}

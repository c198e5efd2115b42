import { isAppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { insertEvents } from '../audit/store.ts';
import type { CredentialDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { endOfferTokens } from '../issuer/authorization/store.ts';
import type { Meter } from '../metrics.ts';
import { type CredentialStatus, mayBecome, withStatus } from '../protocol/statuses.ts';
import { insertChange } from '../recording/store.ts';
import { changePayload, type SignChangeDeps, signChange } from '../recording/transaction.ts';
import { findRecorded, type IssuedCredential, lockCredential, lockStatuses, writeStatus } from './store.ts';
import { statusListUrl } from './tokens.ts';

export interface ChangeStatusDeps extends SignChangeDeps {
  readonly db: Database<CredentialDatabase>;
  readonly clock: Clock;
  readonly meter: Meter;
  readonly issuerUrl: string;
}

interface StatusChange {
  readonly credentialId: string;
  readonly to: CredentialStatus;
  readonly reason: string;
}

/**
 * Suspends, reinstates or revokes a credential. The list that is signed next shows it. While a credential is suspended no
 * copies of it are issued, and revocation ends the tokens of its offer. Where its offer names a register, the change is
 * recorded there too; a wallet service that is away delays the record, never the change.
 * @throws AppError not_found CREDENTIAL_NOT_FOUND, also for credentials of organisations that the caller does not
 * administer; conflict STATUS_TRANSITION, CREDENTIAL_WITHOUT_STATUS
 */
export async function changeStatus(deps: ChangeStatusDeps, caller: Caller, change: StatusChange) {
  const { db, clock, meter } = deps;
  const at = new Date(clock.nowMs());
  const record = await signRecord(deps, caller, { ...change, at });
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
    if (record !== undefined)
      await insertChange(
        tx,
        { ...record, credentialId: credential.id, organizationId: credential.organizationId },
        at,
      );
    return {
      credentialId: credential.id,
      status: change.to,
      listId,
      index: listIndex,
      changedAt: at.toISOString(),
      transactionId: record?.transaction?.id ?? null,
    };
  });
  meter.statusChanged(change.to);
  return changed;
}

/** The transaction of a change, signed before anything is locked; unsigned while the key cannot be had. */
async function signRecord(
  deps: ChangeStatusDeps,
  caller: Caller,
  { credentialId, to, at: changedAt }: StatusChange & { readonly at: Date },
) {
  const found = await findRecorded(deps.db.read, credentialId);
  if (found === undefined || !mayChange(caller, found)) return undefined;
  const { registerId, walletAddress, listId, index } = found;
  const uri = statusListUrl(deps.issuerUrl, listId);
  const payload = changePayload({ credentialId, uri, index, status: to, changedAt });
  const unsigned = { registerId, walletAddress, payload };
  try {
    return { ...unsigned, transaction: await signChange(deps, unsigned) };
  } catch (error) {
    if (isAppError(error)) return { ...unsigned, transaction: undefined };
    throw error;
  }
}

/** Administrators of the issuing organisation, and services. */
function mayChange(caller: Caller, { organizationId }: Pick<IssuedCredential, 'organizationId'>): boolean {
  if (caller.kind === 'service') return caller.delegation === undefined;
  return caller.organizationId === organizationId && caller.roles.includes('Administrator');
}

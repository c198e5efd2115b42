import type { Caller } from '#core/identity/claims.ts';
import type { RefusalLog } from '#kit/audit/audit.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { WalletDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { administers, isOwner, type Wallet } from '../wallets/records/wallet.ts';
import { isActiveGrant, judgeDelegatedUse } from './delegation.ts';
import { findOpenGrant } from './store.ts';

export interface AuthorityDeps {
  readonly db: Pick<Database<WalletDatabase>, 'read'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Collects refusals for the audit log of the organisation. */
  readonly refusals: Pick<RefusalLog, 'count'>;
}

/** One use of a wallet's keys by a caller. */
interface KeyUse {
  readonly act: 'wallet.sign' | 'wallet.decrypt';
  /** as the caller sent it, for the audit line */
  readonly derivationPath: string;
  /** the context that it resolved to */
  readonly context: string | undefined;
  readonly hybridMode: boolean;
}

/** The platform user of a person's token. @throws AppError forbidden PERSON_REQUIRED for any other token. */
export function personOf(caller: Pick<Caller, 'kind' | 'platformUserId'>): string {
  if (caller.kind !== 'user' || caller.platformUserId === undefined) throw refusal('PERSON_REQUIRED');
  return caller.platformUserId;
}

/**
 * Allows the owner, and other callers under the conditions of delegated signing.
 * @throws AppError forbidden WALLET_ACCESS_DENIED after a security-audit line that names the failed condition
 */
export async function authorizeUse(
  deps: AuthorityDeps,
  caller: Caller,
  wallet: Wallet,
  use: KeyUse,
): Promise<'owner' | 'delegate'> {
  if (isOwner(wallet, caller)) return 'owner';
  const person = personOf(caller);
  const failed = judgeDelegatedUse({
    purpose: use.act === 'wallet.sign' ? 'sign' : 'read',
    owningOrganizationId: wallet.ownerOrganizationId,
    callerOrganizationId: caller.organizationId,
    callerIsAdministrator: caller.roles.includes('Administrator'),
    grant: await findOpenGrant(deps.db.read, wallet.id, person),
    context: use.context,
    hybridMode: use.hybridMode,
    nowMs: deps.clock.nowMs(),
  });
  if (failed === undefined) return 'delegate';
  denied(deps, caller, wallet, { act: use.act, reason: failed, derivationPath: use.derivationPath });
}

interface Denial {
  readonly act: KeyUse['act'] | 'wallet.access';
  readonly reason: string;
  readonly derivationPath?: string | undefined;
}

/** Logs and counts the refusal, for the organisation that owns the wallet or else the caller's, and throws. */
function denied(deps: AuthorityDeps, caller: Caller, wallet: Wallet, denial: Denial): never {
  const { act, reason, derivationPath } = denial;
  const { address: walletAddress } = wallet;
  const platformUserId = personOf(caller);
  deps.log.warn(
    {
      securityAudit: act,
      reason,
      walletAddress,
      userId: platformUserId,
      organizationId: caller.organizationId,
      derivationPath,
    },
    act === 'wallet.access'
      ? 'managing the grants of a wallet was refused'
      : 'use of the keys of a wallet was refused',
  );
  const organizationId = wallet.ownerOrganizationId ?? caller.organizationId;
  if (organizationId !== undefined) {
    const resource = { resourceType: 'wallet', resourceId: walletAddress };
    deps.refusals.count({ organizationId, action: act, reason, ...resource, platformUserId });
  }
  throw refusal('WALLET_ACCESS_DENIED');
}

/** Owner, or Administrator of the owning organisation: they see a wallet and manage its grants. */
export function governs(wallet: Wallet, caller: Caller): boolean {
  return isOwner(wallet, caller) || administers(wallet, caller);
}

/** Throws `forbidden` WALLET_ACCESS_DENIED, with an audit line, unless the caller governs the wallet. */
export function authorizeGovernance(deps: AuthorityDeps, caller: Caller, wallet: Wallet): void {
  personOf(caller); // a service manages no grants, not even on its own wallets
  if (governs(wallet, caller)) return;
  denied(deps, caller, wallet, { act: 'wallet.access', reason: 'NEITHER_OWNER_NOR_ADMINISTRATOR' });
}

/** Allows those who govern the wallet and holders of an active grant. @throws AppError not_found WALLET_NOT_FOUND */
export async function authorizeView(deps: AuthorityDeps, caller: Caller, wallet: Wallet): Promise<void> {
  const person = personOf(caller);
  if (governs(wallet, caller)) return;
  const grant = await findOpenGrant(deps.db.read, wallet.id, person);
  if (grant === undefined || !isActiveGrant(grant, deps.clock.nowMs())) throw refusal('WALLET_NOT_FOUND');
}

import { randomUUID } from 'node:crypto';
import type { Caller } from '#core/identity/claims.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { claimKey } from '#kit/db/idempotency.ts';
import { findContext, isGrantableContext } from '../custody/contexts.ts';
import type { AccessRight, WalletDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { getWallet } from '../wallets/records/store.ts';
import type { Wallet } from '../wallets/records/wallet.ts';
import { type AuthorityDeps, authorizeGovernance, governs, personOf } from './authority.ts';
import { includesRight, isActiveGrant, judgeGrant } from './delegation.ts';
import { endGrant, findGrantById, findOpenGrant, type Grant, insertGrant, listGrants } from './store.ts';

export interface GrantDeps extends AuthorityDeps {
  readonly db: Database<WalletDatabase>;
}

interface NewGrant {
  readonly subject: string;
  readonly accessRight: AccessRight;
  readonly reason: string | undefined;
  readonly expiresAtMs: number | undefined;
  readonly allowedContexts: readonly string[];
  readonly idempotencyKey: string | undefined;
}

/** Grants access. The owner may grant any right; an Administrator only with contexts, and never the right Owner. */
export async function grantAccess(
  deps: GrantDeps,
  caller: Caller,
  idOrAddress: string,
  request: NewGrant,
): Promise<Grant> {
  const wallet = await governedWallet(deps, caller, idOrAddress);
  const nowMs = deps.clock.nowMs();
  assertGrantable(wallet, request, nowMs);
  const grant: Grant = {
    id: randomUUID(),
    walletId: wallet.id,
    subject: request.subject,
    accessRight: request.accessRight,
    reason: request.reason,
    grantedBy: personOf(caller),
    grantedAtMs: nowMs,
    expiresAtMs: request.expiresAtMs,
    ended: false,
    allowedContexts: [...new Set(request.allowedContexts)],
  };
  const earlier = await deps.db.transact((tx) => storeGrant(tx, grant, request.idempotencyKey));
  if (earlier !== undefined) return earlier;
  auditGrant(deps, caller, wallet, { subject: grant.subject, change: 'granted' });
  return grant;
}

/** Stores the grant, or returns the grant of an earlier request with the same key. */
async function storeGrant(
  tx: Transactor<WalletDatabase>,
  grant: Grant,
  key: string | undefined,
): Promise<Grant | undefined> {
  const repeatable = { key, scope: [`${grant.grantedBy} grants ${grant.walletId}`], body: bodyOf(grant) };
  const earlier = await claimKey(tx, repeatable, { answer: grant.id, nowMs: grant.grantedAtMs });
  const made = earlier === undefined ? undefined : await findGrantById(tx, earlier);
  if (made !== undefined) return made;
  if (!(await insertGrant(tx, grant))) throw refusal('GRANT_EXISTS');
  return undefined;
}

// The order of the members is part of the stored hash: rows of earlier releases were hashed in it.
function bodyOf(grant: Grant) {
  const { subject, accessRight, reason = '', expiresAtMs = 0, allowedContexts } = grant;
  return { accessRight, allowedContexts, expiresAtMs, reason, subject };
}

export async function listAccess(
  deps: GrantDeps,
  caller: Caller,
  idOrAddress: string,
  window: { readonly offset: number; readonly limit: number },
): Promise<{ grants: Grant[]; totalCount: number }> {
  const wallet = await governedWallet(deps, caller, idOrAddress);
  return listGrants(deps.db.read, wallet.id, window);
}

export async function revokeAccess(
  deps: GrantDeps,
  caller: Caller,
  idOrAddress: string,
  subject: string,
): Promise<void> {
  const wallet = await governedWallet(deps, caller, idOrAddress);
  const ended = await deps.db.transact((tx) => endGrant(tx, wallet.id, subject, deps.clock.nowMs()));
  if (!ended) throw refusal('GRANT_NOT_FOUND');
  auditGrant(deps, caller, wallet, { subject, change: 'revoked' });
}

interface AccessQuestion {
  readonly subject: string;
  readonly right: AccessRight;
}

/** The rights of a subject on the wallet; only those who govern the wallet and the subject itself may query them. */
export async function checkAccess(
  deps: GrantDeps,
  caller: Caller,
  idOrAddress: string,
  question: AccessQuestion,
): Promise<{ hasAccess: boolean; grant: Grant | undefined }> {
  const wallet = await getWallet(deps.db.read, idOrAddress);
  const { subject, right } = question;
  if (!governs(wallet, caller) && subject !== personOf(caller)) authorizeGovernance(deps, caller, wallet);
  if (wallet.ownerUserId === subject) return { hasAccess: true, grant: undefined };
  const grant = await findOpenGrant(deps.db.read, wallet.id, subject);
  const active = grant !== undefined && isActiveGrant(grant, deps.clock.nowMs());
  const hasAccess = active && includesRight(grant.accessRight, right);
  return { hasAccess, grant: active ? grant : undefined };
}

async function governedWallet(deps: GrantDeps, caller: Caller, idOrAddress: string): Promise<Wallet> {
  const wallet = await getWallet(deps.db.read, idOrAddress);
  authorizeGovernance(deps, caller, wallet);
  return wallet;
}

function assertGrantable(wallet: Wallet, request: NewGrant, nowMs: number): void {
  if (wallet.kind === 'Derived') throw refusal('DERIVED_KEY_NOT_GRANTABLE');
  const code = judgeGrant({ ...request, ownedByOrganization: wallet.kind === 'Organization' });
  if (code !== undefined) throw refusal(code);
  const { allowedContexts } = request;
  const unknown = allowedContexts.filter((name) => findContext(name) === undefined);
  if (unknown.length > 0) throw refusal('UNKNOWN_DERIVATION_CONTEXT', { details: { contexts: unknown } });
  const reserved = allowedContexts.filter((name) => !isGrantableContext(name));
  if (reserved.length > 0) throw refusal('DERIVATION_CONTEXT_RESERVED', { details: { contexts: reserved } });
  if (request.expiresAtMs !== undefined && request.expiresAtMs <= nowMs) throw refusal('GRANT_EXPIRY_PAST');
}

function auditGrant(
  deps: GrantDeps,
  caller: Caller,
  wallet: Wallet,
  fact: { readonly subject: string; readonly change: 'granted' | 'revoked' },
): void {
  deps.log.info(
    { securityAudit: 'wallet.access', walletAddress: wallet.address, userId: caller.platformUserId, ...fact },
    'the access to a wallet was changed',
  );
}

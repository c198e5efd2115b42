import type { Caller } from '#core/identity/claims.ts';
import { PUBLIC_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { AuditEvent, AuditEventType, Origin } from '../audit/audit.ts';
import { appendAudit } from '../audit/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { getSettings } from '../platform/store.ts';
import { endTokens } from '../tokens/end.ts';
import type { Organization } from './organization.ts';
import { lockOrganization, updateOrganization } from './store.ts';

export interface StatusDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  /** Tells every service that there are new revocations. */
  readonly notify: () => void;
}

/** Who changes an organisation, when, and from where. */
export interface Act {
  readonly by: Caller;
  readonly origin: Origin;
  readonly atMs: number;
}

export interface StatusWish {
  readonly organizationId: string;
  readonly status: Organization['status'];
  readonly by: Caller;
  readonly origin: Origin;
}

/** Suspends an organisation or opens it again. Throws ORGANIZATION_NOT_FOUND and what `applyStatus` throws. */
export async function setStatus(deps: StatusDeps, wish: StatusWish): Promise<void> {
  const { by, origin } = wish;
  const ended = await deps.db.transact(async (tx) => {
    const organization = await lockOrganization(tx, wish.organizationId);
    if (organization === undefined || organization.deletedAtMs !== undefined) {
      throw refusal('ORGANIZATION_NOT_FOUND');
    }
    // read after the lock: tokens of sign-ins that came before it were issued before this instant
    return applyStatus(tx, organization, { status: wish.status, by, origin, atMs: deps.clock.nowMs() });
  });
  if (ended) deps.notify();
}

/**
 * The change of status inside the transaction that holds the organisation. Suspension ends all tokens of its members;
 * opening it again brings none of them back.
 *
 * @returns whether tokens ended, which services are to be told after the commit.
 * @throws PLATFORM_ORG_PROTECTED; PUBLIC_ORG_DISABLED when the settings keep the Public organisation closed
 */
export async function applyStatus(
  tx: Transactor<TenantDatabase>,
  organization: Organization,
  change: Act & { readonly status: Organization['status'] },
): Promise<boolean> {
  const suspends = change.status === 'Suspended' && organization.status !== 'Suspended';
  if (suspends && organization.isPlatformOrg) throw refusal('PLATFORM_ORG_PROTECTED');
  const opens = change.status === 'Active' && organization.status !== 'Active';
  if (opens && organization.id === PUBLIC_ORGANIZATION_ID && !(await getSettings(tx)).publicOrgEnabled) {
    throw refusal('PUBLIC_ORG_DISABLED');
  }
  return changeStatus(tx, organization, change);
}

/** The same, whosever the organisation is. */
export async function changeStatus(
  tx: Transactor<TenantDatabase>,
  organization: Organization,
  change: Act & { readonly status: Organization['status'] },
): Promise<boolean> {
  const { status } = change;
  if (organization.status === status) return false;
  const suspends = status === 'Suspended';
  await updateOrganization(tx, organization.id, { status });
  if (suspends)
    await endTokensOf(tx, organization.id, { reason: 'organization-suspended', atMs: change.atMs });
  const type = suspends ? 'OrganizationSuspended' : 'OrganizationReactivated';
  await appendAudit(tx, auditOf(organization.id, type, change));
  return suspends;
}

/** Ends every token in the context of an organisation, delegated ones too. */
export function endTokensOf(
  tx: Transactor<TenantDatabase>,
  organizationId: string,
  cause: { readonly reason: string; readonly atMs: number },
): Promise<void> {
  return endTokens(tx, {
    kind: 'organization',
    key: organizationId,
    families: { organizationId },
    ...cause,
  });
}

/** What the organisation's audit log keeps of an act on it. */
export function auditOf(
  organizationId: string,
  type: AuditEventType,
  act: Act & { readonly details?: Readonly<Record<string, unknown>> },
): AuditEvent {
  const { by } = act;
  return {
    organizationId,
    occurredAtMs: act.atMs,
    type,
    identityId: by.kind === 'user' ? by.subject : undefined,
    platformUserId: by.platformUserId,
    origin: act.origin,
    success: true,
    details: { by: by.clientId, ...act.details },
  };
}

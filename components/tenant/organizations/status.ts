import type { Caller } from '#core/identity/claims.ts';
import { PUBLIC_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { AuditEvent, AuditEventType } from '../audit/log/event.ts';
import { appendAudit } from '../audit/log/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { getSettings } from '../platform/settings/store.ts';
import type { Origin } from '../requests/origin.ts';
import { endTokens } from '../tokens/sessions/end-tokens.ts';
import type { Organization } from './organization.ts';
import { lockOrganization, updateOrganization } from './store.ts';

export interface StatusDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  /** Notifies all services of new revocations. */
  readonly notify: () => void;
}

/** The actor, origin and time of a change of an organisation. */
export interface Act {
  readonly by: Caller;
  readonly origin: Origin;
  readonly atMs: number;
}

interface StatusChange {
  readonly organizationId: string;
  readonly status: Organization['status'];
  readonly by: Caller;
  readonly origin: Origin;
}

/** Suspends or reactivates an organisation. @throws ORGANIZATION_NOT_FOUND and the errors of `applyStatus` */
export async function setStatus(deps: StatusDeps, change: StatusChange): Promise<void> {
  const { by, origin } = change;
  const ended = await deps.db.transact(async (tx) => {
    const organization = await lockOrganization(tx, change.organizationId);
    if (organization === undefined || organization.deletedAtMs !== undefined) {
      throw refusal('ORGANIZATION_NOT_FOUND');
    }
    // read after the lock, so that all tokens of earlier sign-ins were issued before this instant
    return applyStatus(tx, organization, { status: change.status, by, origin, atMs: deps.clock.nowMs() });
  });
  if (ended) deps.notify();
}

/**
 * Changes the status in the transaction that has locked the organisation. Suspension ends all tokens of its members;
 * reactivation does not restore them.
 *
 * @returns whether tokens ended; the caller then notifies the services after the commit.
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

/** Changes the status without the checks of `applyStatus`, also of platform organisations. */
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

/** The audit event of an act on the organisation. */
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

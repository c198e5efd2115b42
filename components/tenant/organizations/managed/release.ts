import { appendAudit } from '../../audit/log/store.ts';
import { refusal } from '../../errors.ts';
import type { Organization, StoredOrganization } from '../organization.ts';
import { type Act, applyStatus, auditOf, endTokensOf, type StatusDeps } from '../status.ts';
import { updateOrganization } from '../store.ts';
import type { ManagedOrganization } from './organization.ts';
import { findManaged, lockManaged, lockResource } from './store.ts';

/** What happens to the organisation when its custom resource is deleted. */
export const deletionPolicies = ['Retain', 'Suspend', 'Delete'] as const;
type DeletionPolicy = (typeof deletionPolicies)[number];

type Tx = Parameters<typeof lockManaged>[0];

/**
 * Releases the organisation of a resource: retained, suspended or deleted, by the policy. A deleted organisation keeps
 * its uid and its subdomain for ever. For a resource without an organisation the function does nothing.
 */
export async function releaseOrganization(
  deps: StatusDeps,
  request: { readonly resourceUid: string; readonly policy: DeletionPolicy },
  by: Pick<Act, 'by' | 'origin'>,
): Promise<void> {
  const { resourceUid, policy } = request;
  const ended = await deps.db.transact(async (tx) => {
    await lockResource(tx, resourceUid);
    const organization = await lockManaged(tx, resourceUid);
    if (organization === undefined || organization.deletedAtMs !== undefined) return false;
    const act = { ...by, atMs: deps.clock.nowMs() };
    return policy === 'Delete'
      ? remove(tx, organization, act)
      : release(tx, organization, { ...act, policy });
  });
  if (ended) deps.notify();
}

async function release(
  tx: Tx,
  organization: StoredOrganization,
  act: Act & { readonly policy: DeletionPolicy },
): Promise<boolean> {
  const ended =
    act.policy === 'Suspend' && (await applyStatus(tx, organization, { ...act, status: 'Suspended' }));
  await updateOrganization(tx, organization.id, { resourceUid: null });
  const { resourceUid } = organization;
  const details = { resourceUid, policy: act.policy };
  await appendAudit(tx, auditOf(organization.id, 'OrganizationReleased', { ...act, details }));
  return ended;
}

async function remove(tx: Tx, organization: StoredOrganization, act: Act): Promise<true> {
  if (organization.isPlatformOrg) throw refusal('PLATFORM_ORG_PROTECTED');
  const { id, resourceUid } = organization;
  await updateOrganization(tx, id, { deletedAtMs: act.atMs });
  await endTokensOf(tx, id, { reason: 'organization-deleted', atMs: act.atMs });
  await appendAudit(tx, auditOf(id, 'OrganizationDeleted', { ...act, details: { resourceUid } }));
  return true;
}

/** Suspends or reactivates the organisation of a resource. @throws ORGANIZATION_NOT_FOUND, ORGANIZATION_DELETED */
export async function setManagedStatus(
  deps: StatusDeps,
  request: { readonly resourceUid: string; readonly status: Organization['status'] },
  by: Pick<Act, 'by' | 'origin'>,
): Promise<ManagedOrganization> {
  const { resourceUid, status } = request;
  const { organization, ended } = await deps.db.transact(async (tx) => {
    const stored = await lockManaged(tx, resourceUid);
    if (stored === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
    if (stored.deletedAtMs !== undefined) throw refusal('ORGANIZATION_DELETED');
    const tokensEnded = await applyStatus(tx, stored, { ...by, status, atMs: deps.clock.nowMs() });
    return { organization: await findManaged(tx, { resourceUid }), ended: tokensEnded };
  });
  if (organization === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
  if (ended) deps.notify();
  return organization;
}

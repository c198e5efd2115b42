import { randomUUIDv7 } from 'node:crypto';
import type { Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../audit/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import {
  type Branding,
  isReservedSubdomain,
  type Organization,
  type StoredOrganization,
} from '../organizations/organization.ts';
import { type Act, applyStatus, auditOf, type StatusDeps } from '../organizations/status.ts';
import { insertOrganization, lockOrganization, updateOrganization } from '../organizations/store.ts';
import { isAdoptable, type ManagedOrganization, stateOf } from './organization.ts';
import { findHolder, findManaged, lockManaged, lockResource } from './store.ts';

/** What a custom resource wants its organisation to be. */
export interface WantedOrganization {
  readonly resourceUid: string;
  readonly name: string;
  readonly subdomain: string;
  readonly organizationType: Organization['orgType'];
  /** What is absent stays as it is. */
  readonly branding?: Branding | undefined;
  readonly suspended?: boolean | undefined;
  /** An organisation to adopt instead of making one. */
  readonly organizationId?: string | undefined;
}

export interface Upserted {
  readonly organization: ManagedOrganization;
  readonly created: boolean;
}

interface Step {
  readonly tx: Transactor<TenantDatabase>;
  readonly wanted: WantedOrganization;
  readonly act: Act;
}

/**
 * Makes the organisation of a custom resource, adopts one for it, or brings the one it has up to date; the same wish again
 * changes nothing. One transaction, and requests for one resource take turns.
 *
 * Throws SUBDOMAIN_RESERVED, SUBDOMAIN_CONFLICT, IMMUTABLE_FIELD, ORGANIZATION_NOT_FOUND, ORGANIZATION_BOUND,
 * ORGANIZATION_DELETED, ADOPTION_MISMATCH, PLATFORM_ORG_PROTECTED.
 */
export async function upsertOrganization(
  deps: StatusDeps,
  wanted: WantedOrganization,
  by: Pick<Act, 'by' | 'origin'>,
): Promise<Upserted> {
  const { resourceUid } = wanted;
  const { ended, ...upserted } = await deps.db.transact(async (tx) => {
    await lockResource(tx, resourceUid);
    const known = (await lockManaged(tx, resourceUid)) ?? (await lockAdoptee(tx, wanted));
    const step = { tx, wanted, act: { ...by, atMs: deps.clock.nowMs() } };
    const tokensEnded = known === undefined ? await create(step) : await bringUpToDate(step, known);
    const organization = await findManaged(tx, { resourceUid });
    if (organization === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
    return { organization, created: known === undefined, ended: tokensEnded };
  });
  if (ended) deps.notify();
  return upserted;
}

/** The organisation that the wish names; undefined when it names none. */
async function lockAdoptee(
  tx: Step['tx'],
  { organizationId }: WantedOrganization,
): Promise<StoredOrganization | undefined> {
  if (organizationId === undefined) return undefined;
  const organization = await lockOrganization(tx, organizationId);
  if (organization === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
  return organization;
}

async function create({ tx, wanted, act }: Step): Promise<false> {
  const { resourceUid, name, subdomain, organizationType, branding = {} } = wanted;
  if (isReservedSubdomain(subdomain)) throw refusal('SUBDOMAIN_RESERVED');
  const id = randomUUIDv7();
  const inserted = await insertOrganization(tx, {
    id,
    name,
    subdomain,
    orgType: organizationType,
    status: wanted.suspended === true ? 'Suspended' : 'Active',
    isPlatformOrg: false,
    selfRegistrationEnabled: organizationType === 'Public',
    branding,
    resourceUid,
    createdAtMs: act.atMs,
  });
  if (!inserted) throw await subdomainConflict(tx, subdomain);
  await appendAudit(tx, auditOf(id, 'OrganizationCreated', { ...act, details: { subdomain, resourceUid } }));
  return false;
}

/** Says who has the subdomain, so that a person can decide to adopt it. */
async function subdomainConflict(tx: Step['tx'], subdomain: string): Promise<Error> {
  const holder = await findHolder(tx, subdomain);
  const details = holder && {
    organizationId: holder.id,
    state: stateOf(holder),
    adoptable: isAdoptable(holder),
  };
  return refusal('SUBDOMAIN_CONFLICT', details === undefined ? {} : { details });
}

async function bringUpToDate(step: Step, organization: StoredOrganization): Promise<boolean> {
  const { tx, wanted, act } = step;
  if (organization.deletedAtMs !== undefined) throw refusal('ORGANIZATION_DELETED');
  if (organization.resourceUid === undefined) await adopt(step, organization);
  else requireSame(wanted, organization);
  await changeDetails(step, organization);
  if (wanted.suspended === undefined) return false;
  return applyStatus(tx, organization, { ...act, status: wanted.suspended ? 'Suspended' : 'Active' });
}

async function adopt({ tx, wanted, act }: Step, organization: StoredOrganization): Promise<void> {
  if (organization.isPlatformOrg) throw refusal('PLATFORM_ORG_PROTECTED');
  const errors = differences(wanted, organization);
  if (Object.keys(errors).length > 0) throw refusal('ADOPTION_MISMATCH', { details: { errors } });
  const { resourceUid } = wanted;
  await updateOrganization(tx, organization.id, { resourceUid });
  await appendAudit(
    tx,
    auditOf(organization.id, 'OrganizationAdopted', { ...act, details: { resourceUid } }),
  );
}

function requireSame(wanted: WantedOrganization, organization: StoredOrganization): void {
  if (organization.resourceUid !== wanted.resourceUid) throw refusal('ORGANIZATION_BOUND');
  const errors = differences(wanted, organization);
  if (Object.keys(errors).length > 0) throw refusal('IMMUTABLE_FIELD', { details: { errors } });
}

/** Members that never change and differ, with what they are. */
function differences(
  wanted: WantedOrganization,
  organization: StoredOrganization,
): Record<string, readonly string[]> {
  const pairs = [
    ['subdomain', wanted.subdomain, organization.subdomain],
    ['organizationType', wanted.organizationType, organization.orgType],
    ['organizationId', wanted.organizationId ?? organization.id, organization.id],
  ] as const;
  return Object.fromEntries(
    pairs.flatMap(([field, wish, actual]) => (wish === actual ? [] : [[field, [`it is ${actual}`]]])),
  );
}

async function changeDetails({ tx, wanted, act }: Step, organization: StoredOrganization): Promise<void> {
  const { branding } = wanted;
  const changed = [
    ...(wanted.name === organization.name ? [] : ['name']),
    ...(branding === undefined || sameBranding(branding, organization.branding) ? [] : ['branding']),
  ];
  if (changed.length === 0) return;
  await updateOrganization(tx, organization.id, { name: wanted.name, branding });
  await appendAudit(tx, auditOf(organization.id, 'OrganizationUpdated', { ...act, details: { changed } }));
}

const brandingMembers = ['primaryColor', 'secondaryColor', 'companyTagline', 'logoUrl'] as const;

function sameBranding(one: Branding, other: Branding): boolean {
  return brandingMembers.every((member) => one[member] === other[member]);
}

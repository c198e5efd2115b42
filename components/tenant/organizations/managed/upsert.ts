import { randomUUIDv7 } from 'node:crypto';
import type { Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import {
  type Branding,
  isReservedSubdomain,
  type Organization,
  type StoredOrganization,
} from '../organization.ts';
import { type Act, applyStatus, auditOf, type StatusDeps } from '../status.ts';
import { insertOrganization, lockOrganization, updateOrganization } from '../store.ts';
import { isAdoptable, type ManagedOrganization, stateOf } from './organization.ts';
import { findHolder, findManaged, lockManaged, lockResource } from './store.ts';

/** The organisation that a custom resource specifies. */
interface OrganizationSpec {
  readonly resourceUid: string;
  readonly name: string;
  readonly subdomain: string;
  readonly organizationType: Organization['orgType'];
  /** Absent members stay unchanged. */
  readonly branding?: Branding | undefined;
  readonly suspended?: boolean | undefined;
  /** An organisation to adopt instead of creating one. */
  readonly organizationId?: string | undefined;
}

interface Upserted {
  readonly organization: ManagedOrganization;
  readonly created: boolean;
}

interface Step {
  readonly tx: Transactor<TenantDatabase>;
  readonly spec: OrganizationSpec;
  readonly act: Act;
}

/**
 * Creates the organisation of a custom resource, adopts one for it, or updates the existing one. The function is
 * idempotent. It runs in one transaction, and requests for one resource are serialised.
 *
 * @throws SUBDOMAIN_RESERVED, SUBDOMAIN_CONFLICT, IMMUTABLE_FIELD, ORGANIZATION_NOT_FOUND, ORGANIZATION_BOUND,
 * ORGANIZATION_DELETED, ADOPTION_MISMATCH, PLATFORM_ORG_PROTECTED
 */
export async function upsertOrganization(
  deps: StatusDeps,
  spec: OrganizationSpec,
  by: Pick<Act, 'by' | 'origin'>,
): Promise<Upserted> {
  const { resourceUid } = spec;
  const { ended, ...upserted } = await deps.db.transact(async (tx) => {
    await lockResource(tx, resourceUid);
    const existing = (await lockManaged(tx, resourceUid)) ?? (await lockAdoptee(tx, spec));
    const step = { tx, spec, act: { ...by, atMs: deps.clock.nowMs() } };
    const tokensEnded = existing === undefined ? await create(step) : await update(step, existing);
    const organization = await findManaged(tx, { resourceUid });
    if (organization === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
    return { organization, created: existing === undefined, ended: tokensEnded };
  });
  if (ended) deps.notify();
  return upserted;
}

/** The organisation that the spec names for adoption; undefined when it names none. */
async function lockAdoptee(
  tx: Step['tx'],
  { organizationId }: OrganizationSpec,
): Promise<StoredOrganization | undefined> {
  if (organizationId === undefined) return undefined;
  const organization = await lockOrganization(tx, organizationId);
  if (organization === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
  return organization;
}

async function create({ tx, spec, act }: Step): Promise<false> {
  const { resourceUid, name, subdomain, organizationType, branding = {} } = spec;
  if (isReservedSubdomain(subdomain)) throw refusal('SUBDOMAIN_RESERVED');
  const id = randomUUIDv7();
  const inserted = await insertOrganization(tx, {
    id,
    name,
    subdomain,
    orgType: organizationType,
    status: spec.suspended === true ? 'Suspended' : 'Active',
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

/** The error names the holder of the subdomain, so that an administrator can decide to adopt it. */
async function subdomainConflict(tx: Step['tx'], subdomain: string): Promise<Error> {
  const holder = await findHolder(tx, subdomain);
  const details = holder && {
    organizationId: holder.id,
    state: stateOf(holder),
    adoptable: isAdoptable(holder),
  };
  return refusal('SUBDOMAIN_CONFLICT', details === undefined ? {} : { details });
}

async function update(step: Step, organization: StoredOrganization): Promise<boolean> {
  const { tx, spec, act } = step;
  if (organization.deletedAtMs !== undefined) throw refusal('ORGANIZATION_DELETED');
  if (organization.resourceUid === undefined) await adopt(step, organization);
  else requireSame(spec, organization);
  await changeDetails(step, organization);
  if (spec.suspended === undefined) return false;
  return applyStatus(tx, organization, { ...act, status: spec.suspended ? 'Suspended' : 'Active' });
}

async function adopt({ tx, spec, act }: Step, organization: StoredOrganization): Promise<void> {
  if (organization.isPlatformOrg) throw refusal('PLATFORM_ORG_PROTECTED');
  const errors = differences(spec, organization);
  if (Object.keys(errors).length > 0) throw refusal('ADOPTION_MISMATCH', { details: { errors } });
  const { resourceUid } = spec;
  await updateOrganization(tx, organization.id, { resourceUid });
  await appendAudit(
    tx,
    auditOf(organization.id, 'OrganizationAdopted', { ...act, details: { resourceUid } }),
  );
}

function requireSame(spec: OrganizationSpec, organization: StoredOrganization): void {
  if (organization.resourceUid !== spec.resourceUid) throw refusal('ORGANIZATION_BOUND');
  const errors = differences(spec, organization);
  if (Object.keys(errors).length > 0) throw refusal('IMMUTABLE_FIELD', { details: { errors } });
}

/** Immutable members whose values differ, with their stored values. */
function differences(
  spec: OrganizationSpec,
  organization: StoredOrganization,
): Record<string, readonly string[]> {
  const pairs = [
    ['subdomain', spec.subdomain, organization.subdomain],
    ['organizationType', spec.organizationType, organization.orgType],
    ['organizationId', spec.organizationId ?? organization.id, organization.id],
  ] as const;
  return Object.fromEntries(
    pairs.flatMap(([field, desired, actual]) => (desired === actual ? [] : [[field, [`it is ${actual}`]]])),
  );
}

async function changeDetails({ tx, spec, act }: Step, organization: StoredOrganization): Promise<void> {
  const { branding } = spec;
  const changed = [
    ...(spec.name === organization.name ? [] : ['name']),
    ...(branding === undefined || sameBranding(branding, organization.branding) ? [] : ['branding']),
  ];
  if (changed.length === 0) return;
  await updateOrganization(tx, organization.id, { name: spec.name, branding });
  await appendAudit(tx, auditOf(organization.id, 'OrganizationUpdated', { ...act, details: { changed } }));
}

const brandingMembers = ['primaryColor', 'secondaryColor', 'companyTagline', 'logoUrl'] as const;

function sameBranding(one: Branding, other: Branding): boolean {
  return brandingMembers.every((member) => one[member] === other[member]);
}

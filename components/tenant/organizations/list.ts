import type { Caller } from '#core/identity/claims.ts';
import type { Reader } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { isSystemAdministrator } from './authority.ts';
import type { Organization } from './organization.ts';
import {
  findOrganization,
  findOrganizationBySubdomain,
  isMember,
  listOrganizations,
  listOrganizationsOf,
} from './store.ts';

type Db = Reader<TenantDatabase>;

/** All organisations for a system administrator, the own ones for any other administrator. */
export async function listVisibleOrganizations(db: Db, caller: Caller): Promise<Organization[]> {
  if (isSystemAdministrator(caller)) return listOrganizations(db);
  return caller.platformUserId === undefined ? [] : listOrganizationsOf(db, caller.platformUserId);
}

/** Visible to members, system administrators and services; other callers get ORGANIZATION_NOT_FOUND. */
export async function getVisibleOrganization(db: Db, caller: Caller, id: string): Promise<Organization> {
  const organization = await findOrganization(db, id);
  if (organization !== undefined && (await maySee(db, caller, id))) return organization;
  throw refusal('ORGANIZATION_NOT_FOUND');
}

async function maySee(db: Db, caller: Caller, id: string): Promise<boolean> {
  if (caller.kind === 'service' || isSystemAdministrator(caller)) return true;
  return caller.platformUserId !== undefined && isMember(db, id, caller.platformUserId);
}

/** The anonymous look-up; a suspended organisation is not found. */
export async function getOpenOrganization(db: Db, subdomain: string): Promise<Organization> {
  const organization = await findOrganizationBySubdomain(db, subdomain.toLowerCase());
  if (organization?.status === 'Active') return organization;
  throw refusal('ORGANIZATION_NOT_FOUND');
}

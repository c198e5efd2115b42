import { randomUUIDv7 } from 'node:crypto';
import { ROLES } from '#core/identity/roles.ts';
import { clientIdOf, type Service } from '#core/identity/services.ts';
import {
  DEFAULT_ADMIN_ID,
  PUBLIC_ORGANIZATION_ID,
  SYSTEM_ORGANIZATION_ID,
} from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { insertOrganization } from '../../organizations/store.ts';
import { normalizeEmail } from '../../people/accounts/account.ts';
import { claimAccount, requirePasswordChange } from '../../people/accounts/store.ts';
import { insertIdentity } from '../../people/memberships/store.ts';
import type { Passwords } from '../../sign-in/passwords/queue.ts';
import { hashSecret } from '../principals/principal.ts';
import { insertPrincipal } from '../principals/store.ts';
import { insertSettings } from '../settings/store.ts';
import { hasIdentity, lockSeeding } from './store.ts';

interface Seed {
  readonly adminEmail: string;
  readonly adminPassword: string;
  readonly publicOrgEnabled: boolean;
  /** Services that get a principal. */
  readonly services: readonly Service[];
  /** Secrets by client id, for principals without a secret. */
  readonly serviceSecrets: ReadonlyMap<string, string>;
}

interface SeedDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly passwords: Passwords;
}

/** Organisations that a person may create: more when the Public organisation is enabled, otherwise one. */
const maxOrgsPerUser = { publicEnabled: 100, publicDisabled: 1 } as const;

/** Inserts missing rows and leaves existing rows unchanged, so that every start can run it. */
export async function seed(deps: SeedDeps, spec: Seed): Promise<void> {
  const isNew = await deps.db.transact(async (tx) => {
    await lockSeeding(tx);
    const atMs = deps.clock.nowMs();
    await seedOrganizations(tx, spec, atMs);
    await seedPrincipals(tx, spec, atMs);
    return !(await hasIdentity(tx, DEFAULT_ADMIN_ID));
  });
  if (isNew) await seedAdministrator(deps, spec);
}

async function seedOrganizations(tx: Transactor<TenantDatabase>, spec: Seed, atMs: number): Promise<void> {
  const { publicOrgEnabled } = spec;
  const row = { isPlatformOrg: true, branding: {}, createdAtMs: atMs };
  await insertOrganization(tx, {
    ...row,
    id: SYSTEM_ORGANIZATION_ID,
    name: 'System Admin',
    subdomain: 'system',
    orgType: 'Standard',
    status: 'Active',
    selfRegistrationEnabled: false,
  });
  await insertOrganization(tx, {
    ...row,
    id: PUBLIC_ORGANIZATION_ID,
    name: 'Public',
    subdomain: 'public',
    orgType: 'Public',
    status: publicOrgEnabled ? 'Active' : 'Suspended',
    selfRegistrationEnabled: publicOrgEnabled,
  });
  await insertSettings(tx, {
    publicOrgEnabled,
    maxOrgsPerUser: publicOrgEnabled ? maxOrgsPerUser.publicEnabled : maxOrgsPerUser.publicDisabled,
    updatedAtMs: atMs,
  });
}

async function seedPrincipals(
  tx: Transactor<TenantDatabase>,
  { services, serviceSecrets }: Seed,
  atMs: number,
): Promise<void> {
  for (const service of services) {
    // The first validator has a seeded principal; the operator creates those of further validators.
    const clientId = service.members === true ? `${service.name}-0` : clientIdOf(service.name);
    const secret = serviceSecrets.get(clientId);
    await insertPrincipal(tx, {
      id: service.principalId,
      clientId,
      serviceName: service.name,
      scopes: service.scopes,
      canSignSystem: service.signsForSystem === true,
      secretHash: secret === undefined ? undefined : hashSecret(secret),
      createdAtMs: atMs,
    });
  }
}

async function seedAdministrator(deps: SeedDeps, spec: Seed): Promise<void> {
  const email = normalizeEmail(spec.adminEmail);
  const passwordHash = await deps.passwords.hash(spec.adminPassword);
  const createdAtMs = deps.clock.nowMs();
  const displayName = 'Administrator';
  await deps.db.transact(async (tx) => {
    await lockSeeding(tx);
    // the address comes from the settings of the installation, so it counts as verified
    const account = await claimAccount(tx, {
      id: randomUUIDv7(),
      email,
      displayName,
      passwordHash,
      emailVerified: true,
      homeOrganizationId: SYSTEM_ORGANIZATION_ID,
      createdAtMs,
    });
    // an address that had an account keeps its own password
    if (account.isNew) await requirePasswordChange(tx, account.id);
    await insertIdentity(tx, {
      id: DEFAULT_ADMIN_ID,
      organizationId: SYSTEM_ORGANIZATION_ID,
      platformUserId: account.id,
      email,
      displayName,
      roles: ROLES,
      provisionedVia: 'Local',
      createdAtMs,
    });
  });
}

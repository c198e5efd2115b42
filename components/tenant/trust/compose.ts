import type { Database } from '#kit/db/db.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { TenantConfig } from '../config.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { createCrlPublisher } from './authority/crl.ts';
import type { AuthorityRouteDeps } from './authority/routes.ts';
import type { EnrolDeps } from './certificates/enrol.ts';
import type { OrganizationKeys } from './keys/organization-keys.ts';

interface TrustParts {
  readonly config: TenantConfig;
  readonly runtime: Runtime;
  readonly db: Database<TenantDatabase>;
}

export type TrustDeps = AuthorityRouteDeps & EnrolDeps;

/** Authorities and certificates of organisations. */
export function createTrust({ config, runtime, db }: TrustParts, keys: OrganizationKeys): TrustDeps {
  const { clock, log } = runtime;
  const baseUrl = config.CHANCERY_BASE_URL;
  return { db, clock, keys, baseUrl, crls: createCrlPublisher({ db, clock, log, keys }) };
}

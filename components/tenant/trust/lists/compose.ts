import type { Database } from '#kit/db/db.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createOutbound } from '#kit/outbound/outbound.ts';
import type { TenantConfig } from '../../config.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { TrustListDeps } from './import-list.ts';
import { createListReader } from './reading/reader.ts';

interface TrustListParts {
  readonly config: Pick<TenantConfig, 'CHANCERY_OUTBOUND_ALLOWED' | 'Trust__TrustListStrictFreshness'>;
  readonly runtime: Pick<Runtime, 'clock' | 'log'>;
  readonly db: Database<TenantDatabase>;
}

/** Builds what imports and reads of trust lists need; threads start with imports. */
export function createTrustLists({ config, runtime, db }: TrustListParts): TrustListDeps {
  const { clock, log } = runtime;
  return {
    db,
    clock,
    reader: createListReader({ log }),
    door: createOutbound({ allowed: config.CHANCERY_OUTBOUND_ALLOWED }),
    strictFreshness: config.Trust__TrustListStrictFreshness,
  };
}

import { migrationOf } from '#kit/db/db.ts';
import { run } from '#kit/lifecycle/lifecycle.ts';
import { createTenant } from './compose.ts';
import { tenantSettings } from './config.ts';
import { migrations } from './database/migrations/list.ts';

await run({
  service: 'tenant',
  schema: tenantSettings,
  create: createTenant,
  migrate: migrationOf('tenant', migrations),
});

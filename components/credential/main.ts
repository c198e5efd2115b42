import { migrationOf } from '#kit/db/db.ts';
import { run } from '#kit/lifecycle/lifecycle.ts';
import { createCredential } from './compose.ts';
import { credentialSettings } from './config.ts';
import { migrations } from './database/migrations/list.ts';

await run({
  service: 'service-credential',
  schema: credentialSettings,
  create: createCredential,
  migrate: migrationOf('credential', migrations),
});

import { migrationOf } from '#kit/db/db.ts';
import { run } from '#kit/lifecycle/lifecycle.ts';
import { createBlueprint } from './compose.ts';
import { blueprintSettings } from './config.ts';
import { migrations } from './database/migrations/list.ts';

await run({
  service: 'service-blueprint',
  schema: blueprintSettings,
  create: createBlueprint,
  migrate: migrationOf('blueprint', migrations),
});

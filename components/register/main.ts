import { migrationOf } from '#kit/db/db.ts';
import { run } from '#kit/lifecycle/lifecycle.ts';
import { createRegister } from './compose.ts';
import { registerSettings } from './config.ts';
import { migrations } from './database/migrations/list.ts';

await run({
  service: 'service-register',
  schema: registerSettings,
  create: createRegister,
  migrate: migrationOf('register', migrations),
});

import { migrationOf } from '#kit/db/db.ts';
import { run } from '#kit/lifecycle/lifecycle.ts';
import { createHello } from './compose.ts';
import { helloSettings } from './config.ts';
import { migrations } from './database/migrations/list.ts';

await run({
  service: 'hello',
  schema: helloSettings,
  create: createHello,
  migrate: migrationOf('hello', migrations),
});

import { migrationOf } from '#kit/db/db.ts';
import { run } from '#kit/lifecycle/lifecycle.ts';
import { createWallet } from './compose.ts';
import { walletSettings } from './config.ts';
import { migrations } from './database/migrations/list.ts';

await run({
  service: 'service-wallet',
  schema: walletSettings,
  create: createWallet,
  migrate: migrationOf('wallet', migrations),
});

import { loadConfig } from '#kit/config/config.ts';
import { migrationOf } from '#kit/db/db.ts';
import { run } from '#kit/lifecycle/lifecycle.ts';
import { createTenant } from './compose.ts';
import { tenantSettings } from './config.ts';
import { migrations } from './database/migrations/list.ts';
import { recoverByAddress } from './sign-in/recovery/compose.ts';

/** What `recover` needs of the settings. */
const recoverySettings = tenantSettings.pick({
  DATABASE_URL: true,
  CHANCERY_PROTECTION_KEY_FILE: true,
  CHANCERY_BASE_URL: true,
});

await run({
  service: 'tenant',
  schema: tenantSettings,
  create: createTenant,
  migrate: migrationOf('tenant', migrations),
  commands: {
    recover: async ([address], { env, log }) => {
      if (address === undefined) return undefined;
      const settings = loadConfig(recoverySettings, env);
      const databaseUrl = settings.DATABASE_URL;
      const protectionKey = settings.CHANCERY_PROTECTION_KEY_FILE.reveal();
      return recoverByAddress(
        { databaseUrl, protectionKey, baseUrl: settings.CHANCERY_BASE_URL, log },
        address,
      );
    },
  },
});

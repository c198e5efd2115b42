import { systemClock } from '#kit/clock/clock.ts';
import { openDatabase } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import { createTelemetry } from '#kit/telemetry/telemetry.ts';
import { migrations } from '../../database/migrations/list.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { createProtection } from '../../tokens/keys/protection.ts';
import { recoverAccount } from './recover-account.ts';

/** What the recovery of an account needs of the settings. */
interface RecoverySettings {
  readonly databaseUrl: string;
  readonly protectionKey: Uint8Array;
  readonly baseUrl: string;
  readonly log: Logger;
}

/** Opens the database for one recovery. @returns the link @throws USER_NOT_FOUND */
export async function recoverByAddress(settings: RecoverySettings, address: string): Promise<string> {
  const { databaseUrl: url, protectionKey, baseUrl, log } = settings;
  const telemetry = createTelemetry({ service: 'tenant-recovery' });
  const db = await openDatabase<TenantDatabase>({ url, schema: 'tenant', log, telemetry, migrations });
  try {
    const protection = createProtection(protectionKey);
    return await recoverAccount({ db, clock: systemClock(), protection, baseUrl }, address);
  } finally {
    await db.close();
  }
}

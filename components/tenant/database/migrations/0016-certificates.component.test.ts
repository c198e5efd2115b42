import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { certificates } from './0016-certificates.ts';
import { migrations } from './list.ts';

it('keeps organisations, and an organisation has one root and one certificate of a provenance in use', async () => {
  const { log, telemetry } = testRuntime('tenant');
  const url = await testDatabase('tenant_certificates');
  const open = (list: typeof migrations) =>
    openDatabase<Record<never, never>>({ url, schema: 'tenant', log, telemetry, migrations: list });
  const before = await open(migrations.slice(0, migrations.indexOf(certificates)));
  await before.transact((tx) =>
    sql`INSERT INTO organizations
      (id, name, subdomain, status, org_type, is_platform_org, self_registration_enabled, branding, created_at)
      VALUES (gen_random_uuid(), 'Acme', 'acme', 'Active', 'Standard', false, false, '{}', now())`.execute(
      tx,
    ),
  );
  await before.close();
  const after = await open(migrations);
  const root = sql`INSERT INTO organization_roots
    (id, organization_id, wallet_address, certificate, key_thumbprint, not_after, created_at)
    SELECT gen_random_uuid(), id, 'w1', '\\x00', 'k', now(), now() FROM organizations`;
  const imported = sql`INSERT INTO organization_certificates
    (id, organization_id, wallet_address, provenance, status, chain, serial_number, not_before, not_after,
     usable_until, key_source, key_thumbprint, created_at)
    SELECT gen_random_uuid(), id, 'w1', 'Imported', 'Active', ARRAY['\\x00'::bytea], '01', now(), now(), now(),
     'Primary', 'k', now() FROM organizations`;
  for (const insert of [root, imported]) {
    const { numAffectedRows } = await after.transact((tx) => insert.execute(tx));
    expect(numAffectedRows).toBe(1n);
    await expect(after.transact((tx) => insert.execute(tx))).rejects.toThrow('duplicate key');
  }
  const internal = sql`INSERT INTO organization_certificates
    SELECT gen_random_uuid(), organization_id, wallet_address, 'Internal' FROM organization_certificates`;
  await expect(after.transact((tx) => internal.execute(tx))).rejects.toThrow();
  await after.close();
});

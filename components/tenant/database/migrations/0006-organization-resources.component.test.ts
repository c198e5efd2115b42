import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { organizationResources } from './0006-organization-resources.ts';
import { migrations } from './list.ts';

it('existing organisations belong to no resource; the existing operator principal gets the scope once', async () => {
  const { log, telemetry } = testRuntime('tenant');
  const url = await testDatabase('tenant_resources');
  const open = (list: typeof migrations) =>
    openDatabase<Record<never, never>>({ url, schema: 'tenant', log, telemetry, migrations: list });
  const before = await open(migrations.slice(0, migrations.indexOf(organizationResources)));
  await before.transact(async (tx) => {
    await sql`INSERT INTO organizations (id, name, subdomain, status, org_type, created_at)
      VALUES (gen_random_uuid(), 'Acme', 'acme', 'Suspended', 'Standard', now())`.execute(tx);
    await sql`INSERT INTO service_principals (id, client_id, service_name, scopes, status, created_at) VALUES
      (gen_random_uuid(), 'service-operator', 'operator', '{principals:write}', 'Active', now()),
      (gen_random_uuid(), 'service-wallet', 'wallet', '{audit:write}', 'Active', now())`.execute(tx);
  });
  await before.close();
  for (const _ of ['upgrade', 'next start']) {
    const after = await open(migrations);
    const organizations =
      await sql`SELECT name, status, resource_uid, version, purged_at FROM organizations`.execute(after.read);
    expect(organizations.rows).toEqual([
      { name: 'Acme', status: 'Suspended', resource_uid: null, version: 1, purged_at: null },
    ]);
    const principals = await sql`SELECT client_id, scopes FROM service_principals ORDER BY client_id`.execute(
      after.read,
    );
    expect(principals.rows).toEqual([
      { client_id: 'service-operator', scopes: ['principals:write', 'organizations:write'] },
      { client_id: 'service-wallet', scopes: ['audit:write'] },
    ]);
    await after.close();
  }
});

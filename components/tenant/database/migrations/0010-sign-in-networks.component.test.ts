import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { admit } from '../../sign-in/lockout/ladder.ts';
import { readLadder } from '../../sign-in/lockout/store.ts';
import { accountSubject } from '../../sign-in/lockout/subject.ts';
import type { TenantDatabase } from '../schema.ts';
import { signInNetworks } from './0010-sign-in-networks.ts';
import { migrations } from './list.ts';

const ids = { timed: 1, permanent: 2, ended: 3, clean: 4 } as const;
const idOf = (name: keyof typeof ids) => `00000000-0000-7000-8000-00000000000${ids[name]}`;

it('locks of an earlier release become a rate limit; networks of the last 30 days are known', async () => {
  const { log, telemetry } = testRuntime('tenant');
  const url = await testDatabase('tenant_networks');
  const open = (list: typeof migrations) =>
    openDatabase<TenantDatabase>({ url, schema: 'tenant', log, telemetry, migrations: list });
  const before = await open(migrations.slice(0, migrations.indexOf(signInNetworks)));
  await before.transact(async (tx) => {
    const account = (name: keyof typeof ids, failures: number, until: string | null, permanent: boolean) =>
      sql`INSERT INTO platform_users
          (id, email, display_name, failed_login_count, locked_until, locked_permanently, status, created_at)
        VALUES (${idOf(name)}, ${`${name}@example.org`}, ${name}, ${failures}, ${until}, ${permanent}, 'Active', now())`.execute(
        tx,
      );
    await account('timed', 10, new Date(Date.now() + 1_800_000).toISOString(), false);
    await account('permanent', 25, null, true);
    await account('ended', 5, new Date(Date.now() - 1_000).toISOString(), false);
    await account('clean', 0, null, false);
    const signIn = (name: keyof typeof ids, address: string | null, daysAgo: number, success = true) =>
      sql`INSERT INTO audit_events (organization_id, occurred_at, event_type, platform_user_id, ip_address, success, details)
        VALUES (gen_random_uuid(), now() - make_interval(days => ${daysAgo}), ${success ? 'Login' : 'LoginFailed'},
          ${idOf(name)}, ${address}, ${success}, '{}')`.execute(tx);
    await signIn('permanent', '203.0.113.9', 3);
    await signIn('permanent', '::ffff:203.0.113.77', 1);
    await signIn('permanent', '2001:db8:1:2::3', 29);
    await signIn('permanent', '192.0.2.1', 31);
    await signIn('permanent', '198.51.100.1', 1, false);
    await signIn('clean', 'no address', 1);
    await signIn('clean', null, 1);
    for (let i = 0; i < 20; i++) await signIn('timed', `10.0.${i}.1`, i);
  });
  await before.close();

  const after = await open(migrations);
  const ladderOf = (name: keyof typeof ids) => readLadder(after.read, accountSubject(idOf(name)));
  const nowMs = Date.now();
  const permanent = await ladderOf('permanent');
  expect(permanent).toMatchObject({ failures: 25, isClosed: false });
  expect([...permanent.networks.keys()].toSorted()).toEqual(['2001:db8:1::/48', '203.0.113.0/24']);
  expect(admit(permanent, '203.0.113.0/24', nowMs)).toEqual({ kind: 'open' });
  expect(admit(permanent, '198.51.100.0/24', nowMs)).toMatchObject({ kind: 'slowed' });
  expect(admit(permanent, '198.51.100.0/24', nowMs + 86_400_000)).toEqual({ kind: 'open' });
  const timed = await ladderOf('timed');
  expect(timed.failures).toBe(10);
  expect(timed.networks.size).toBe(16);
  expect(timed.networks.has('10.0.19.0/24')).toBe(false);
  expect(admit(timed, '198.51.100.0/24', nowMs + 1_700_000)).toMatchObject({ kind: 'slowed' });
  expect(admit(timed, '198.51.100.0/24', nowMs + 1_801_000)).toEqual({ kind: 'open' });
  expect(await ladderOf('ended')).toMatchObject({ failures: 5, theoreticalArrivalMs: 0 });
  expect((await ladderOf('clean')).networks.size).toBe(0);
  await after.close();
});

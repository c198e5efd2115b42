import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { liftCap } from '#kit/rate-limit/security-cap.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  adminEmail,
  adminPassword,
  bearer,
  grant,
  startReplica,
  startTestTenant,
  type TestTenant,
} from '../../tenant.fixture.ts';
import { maxWaitingPerAddress } from './guess-cap.ts';
import { reportLocks } from './report-locks.ts';
import { pruneLadders } from './store.ts';

const password = 'seven quiet lanterns drift';
const email = 'lena@example.org';
const elsewhere = '198.51.100.7';
const dayMs = 86_400_000;

describe('progressive lockout by account and network', () => {
  let tenant: TestTenant;
  let userId: string;

  interface From {
    readonly app: TestTenant['app'];
    readonly who: string;
    readonly ip: string;
  }
  const login = (secret: string, { app = tenant.app, who = email, ip = elsewhere }: Partial<From> = {}) =>
    app.inject({
      method: 'POST',
      url: '/api/auth/login',
      remoteAddress: ip,
      payload: { email: who, password: secret },
    });
  const statusOf = async (...given: Parameters<typeof login>) => (await login(...given)).statusCode;
  /** Advances the clock past the minute of the throttle. */
  const passMinute = (who = email) => liftCap(tenant.db, { name: 'login-email', key: who });
  const fail = async (times: number, from: Partial<From> = {}) => {
    for (let i = 0; i < times; i++) {
      await passMinute(from.who);
      expect(await statusOf('wrong', from)).toBe(401);
    }
    await passMinute(from.who);
  };
  const unlock = async () => {
    const { access_token } = await grant(tenant);
    const url = `/api/organizations/${SYSTEM_ORGANIZATION_ID}/users/${userId}/unlock`;
    // the revocation view is polled in real time, so it is stale for a moment after the clock has moved
    return waitFor(async () => {
      const answer = await tenant.app.inject({ method: 'POST', url, headers: bearer(access_token) });
      return answer.statusCode !== 503 && answer;
    });
  };
  const accountId = async (who = email) => {
    const row = tenant.db.read.selectFrom('platform_users').select('id').where('email', '=', who);
    return (await row.executeTakeFirstOrThrow()).id;
  };

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_lockout', {
      CHANCERY_LOCKOUT_STEPS:
        '[{"failures":5,"seconds":10},{"failures":7,"seconds":60},{"failures":8,"seconds":"until-unlocked"}]',
    });
    const { access_token } = await grant(tenant);
    const created = await tenant.app.inject({
      method: 'POST',
      url: `/api/organizations/${SYSTEM_ORGANIZATION_ID}/users`,
      headers: bearer(access_token),
      payload: { email, displayName: 'Lena', password, roles: ['Auditor'] },
    });
    expect(created.statusCode).toBe(201);
    userId = created.json().id;
  });
  afterAll(() => tenant.stop());
  beforeEach(async () => {
    const id = await accountId();
    await tenant.db.transact(async (tx) => {
      await sql`DELETE FROM account_guesses WHERE subject = ${id}`.execute(tx);
      await sql`DELETE FROM account_networks WHERE subject = ${id}`.execute(tx);
      await sql`DELETE FROM security_caps`.execute(tx);
    });
  });

  it('five wrong guesses from another network do not lock out the only administrator', async () => {
    expect(await statusOf(adminPassword, { who: adminEmail, ip: '203.0.113.20' })).toBe(200);
    for (let i = 0; i < 5; i++) expect(await statusOf('wrong', { who: adminEmail })).toBe(401);
    // neither the lock nor the throttle of the attacker applies to the known network
    expect(await statusOf(adminPassword, { who: adminEmail, ip: '203.0.113.99' })).toBe(200);
    await passMinute(adminEmail);
    expect(await statusOf(adminPassword, { who: adminEmail })).toBe(401);
  });

  it('the ladder reaches its last step elsewhere while the known network stays open, on every replica', async () => {
    const replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    expect(await statusOf(password, { ip: '2001:db8:1:2::3' })).toBe(200);
    for (const ip of ['198.51.100.7', '2001:db8:2::1']) {
      await fail(5, { ip });
      await fail(1, { ip, app: replica.app });
    }
    expect(await statusOf(password, { ip: '198.51.100.200', app: replica.app })).toBe(401);
    await passMinute();
    expect(await statusOf(password, { ip: '2001:db8:2:ffff::1', app: replica.app })).toBe(401);
    await passMinute();
    expect(await statusOf(password, { ip: '2001:db8:1:ffff::9', app: replica.app })).toBe(200);
    await replica.stop();
  });

  it('five wrong passwords throttle the address, known or not, on every replica', async () => {
    const replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    for (const who of [email, 'ghost@example.org']) {
      for (let i = 0; i < 5; i++) expect(await statusOf('wrong', { who })).toBe(401);
      const sixth = await login(password, { app: replica.app, who: who.toUpperCase() });
      expect(sixth.statusCode).toBe(429);
      expect(Number(sixth.headers['retry-after'])).toBeGreaterThan(0);
      expect(Number(sixth.headers['retry-after'])).toBeLessThanOrEqual(60);
    }
    await replica.stop();
  });

  it('another spelling of the address does not use up the throttle of a known network', async () => {
    expect(await statusOf(password, { ip: '203.0.113.20' })).toBe(200);
    for (const who of [`${email} 203.0.113.0/24`, JSON.stringify([email, '203.0.113.0/24'])]) {
      for (let i = 0; i < 5; i++) await login('wrong', { who });
    }
    expect(await statusOf(password, { ip: '203.0.113.20' })).toBe(200);
  });

  it('parallel guesses count too: of fifty on two replicas at most five are checked', async () => {
    const replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => login('wrong', { app: i % 2 === 0 ? tenant.app : replica.app })),
    );
    const statuses = answers.map((answer) => answer.statusCode);
    expect(statuses.filter((status) => status === 401)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(45);
    for (const answer of answers) {
      if (answer.statusCode === 429) expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    }
    await replica.stop();
  });

  it('parallel right passwords of one person succeed up to the queue limit', async () => {
    const answers = await Promise.all(Array.from({ length: maxWaitingPerAddress }, () => login(password)));
    expect(new Set(answers.map((answer) => answer.statusCode))).toEqual(new Set([200]));
  });

  it('a right password removes only its own guess', async () => {
    for (let i = 0; i < 4; i++) expect(await statusOf('wrong', { ip: '192.0.2.1' })).toBe(401);
    for (let i = 0; i < 3; i++) expect(await statusOf(password)).toBe(200);
    expect(await statusOf('wrong', { ip: '192.0.2.1' })).toBe(401);
    expect(await statusOf('wrong', { ip: '192.0.2.1' })).toBe(429);
  });

  it('locks at a step: the right password is refused until the time has passed', async () => {
    await fail(5);
    expect(await statusOf(password)).toBe(401);
    tenant.clock.advance(9_000);
    expect(await statusOf(password)).toBe(401);
    tenant.clock.advance(1_001);
    expect(await statusOf(password)).toBe(200);
    // the network is known from now on and no longer locked
    await tenant.db.transact((tx) => sql`DELETE FROM security_caps`.execute(tx));
    for (let i = 0; i < 5; i++) expect(await statusOf('wrong')).toBe(401);
    await tenant.db.transact((tx) => sql`DELETE FROM security_caps`.execute(tx));
    expect(await statusOf(password)).toBe(200);
  });

  it('reaches the step that only an administrator unlocks, and writes audit events', async () => {
    await fail(5);
    tenant.clock.advance(10_001);
    await fail(2);
    tenant.clock.advance(59_000);
    expect(await statusOf(password)).toBe(401);
    tenant.clock.advance(1_001);
    await fail(1);
    tenant.clock.advance(365 * dayMs);
    expect(await statusOf(password)).toBe(401);
    tenant.clock.advance(-365 * dayMs);
    expect((await unlock()).statusCode).toBe(200);
    expect(await statusOf(password)).toBe(200);
    await reportLocks(tenant);
    const rows = await tenant.db.read
      .selectFrom('audit_events')
      .select(['event_type', 'details'])
      .where('event_type', '=', 'AccountUnlockedByAdmin')
      .execute();
    expect(rows.map((row) => row.details['failures'])).toContain(8);
  });

  it('reports each lock once over all replicas, in the audit log and the inbox', async () => {
    await fail(5);
    const replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    await Promise.all([reportLocks(tenant), reportLocks(replica), reportLocks(tenant)]);
    await replica.stop();
    const id = await accountId();
    const locks = await tenant.db.read
      .selectFrom('audit_events')
      .select(['organization_id', 'details'])
      .where('event_type', '=', 'AccountLockedOut')
      .where('platform_user_id', '=', id)
      .where(sql<boolean>`details ->> 'failures' = '5'`)
      .execute();
    expect(locks).toEqual([
      {
        organization_id: SYSTEM_ORGANIZATION_ID,
        details: {
          failures: 5,
          until: new Date(tenant.clock.nowMs() + 10_000).toISOString(),
          network: '198.51.100.0/24',
        },
      },
    ]);
    const entries = await tenant.db.read
      .selectFrom('inbox_entries')
      .select('title')
      .where('platform_user_id', '=', id)
      .where('icon_key', '=', 'security.account-locked')
      .execute();
    expect(entries.map(({ title }) => title)).toContain(
      'Your account was locked for 198.51.100.0/24 after wrong passwords',
    );
  });

  it('an unlock clears lock, throttle and limit and keeps the count; a right password clears the count', async () => {
    expect(await statusOf(password, { ip: '203.0.113.20' })).toBe(200);
    await fail(4);
    for (let i = 0; i < 5; i++) expect(await statusOf('wrong')).toBe(401);
    expect(await statusOf(password)).toBe(429);
    for (let i = 0; i < 5; i++) expect(await statusOf('wrong', { ip: '203.0.113.20' })).toBe(401);
    expect(await statusOf(password, { ip: '203.0.113.20' })).toBe(429);
    expect((await unlock()).statusCode).toBe(200);
    expect(await statusOf('wrong', { ip: '203.0.113.20' })).toBe(401);
    // the sixth consecutive failure from this network, so the next step is the seventh
    expect(await statusOf('wrong')).toBe(401);
    expect(await statusOf('wrong')).toBe(401);
    expect(await statusOf(password)).toBe(401);
    const id = await accountId();
    const countOf = async () =>
      (
        await sql<{ failures: number }>`SELECT failures FROM account_guesses WHERE subject = ${id}`.execute(
          tenant.db.read,
        )
      ).rows[0]?.failures;
    expect(await countOf()).toBe(13);
    expect(await statusOf(password, { ip: '203.0.113.20' })).toBe(200);
    expect(await countOf()).toBe(0);
  });

  it('100 consecutive failures close the account until an administrator unlocks it, and one more closes it again', async () => {
    expect(await statusOf(password, { ip: '203.0.113.20' })).toBe(200);
    const id = await accountId();
    await tenant.db.transact((tx) =>
      sql`UPDATE account_guesses SET failures = 99 WHERE subject = ${id}`.execute(tx),
    );
    expect(await statusOf('wrong')).toBe(401);
    expect(await statusOf(password, { ip: '203.0.113.20' })).toBe(401);
    await reportLocks(tenant);
    const closed = await tenant.db.read
      .selectFrom('audit_events')
      .select('details')
      .where(sql<boolean>`details ->> 'network' = 'all'`)
      .execute();
    expect(closed).toEqual([{ details: { failures: 100, until: 'unlocked', network: 'all' } }]);
    expect((await unlock()).statusCode).toBe(200);
    expect(await statusOf('wrong', { ip: '192.0.2.9' })).toBe(401);
    expect(await statusOf(password, { ip: '203.0.113.20' })).toBe(401);
    expect((await unlock()).statusCode).toBe(200);
    expect(await statusOf(password, { ip: '203.0.113.20' })).toBe(200);
  });

  it('two replicas at the 99th failure check one more guess in total', async () => {
    const replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    await fail(1);
    const id = await accountId();
    await tenant.db.transact((tx) =>
      sql`UPDATE account_guesses SET failures = 99 WHERE subject = ${id}`.execute(tx),
    );
    await Promise.all([tenant.app, replica.app].map((app, i) => login('wrong', { app, ip: `192.0.${i}.1` })));
    const { rows } = await sql`SELECT failures, is_closed FROM account_guesses WHERE subject = ${id}`.execute(
      tenant.db.read,
    );
    expect(rows).toEqual([{ failures: 100, is_closed: true }]);
    await replica.stop();
  });

  it('attempts while locked do not count', async () => {
    await fail(5);
    await fail(3);
    tenant.clock.advance(10_001);
    expect(await statusOf(password)).toBe(200);
  });

  it('many networks share a limit and a bounded number of rows', async () => {
    const judged: number[] = [];
    for (let i = 0; i < 60; i++) {
      await passMinute();
      judged.push(await statusOf('wrong', { ip: `2001:db8:${i.toString(16)}::1` }));
    }
    expect(judged.filter((status) => status === 401)).toHaveLength(15);
    for (let i = 0; i < 40; i++) {
      await passMinute();
      tenant.clock.advance(7_200_000);
      await login('wrong', { ip: `2001:db8:${(100 + i).toString(16)}::1` });
    }
    const id = await accountId();
    const { rows } = await sql<{ networks: number }>`
      SELECT count(*)::int AS networks FROM account_networks WHERE subject = ${id}`.execute(tenant.db.read);
    expect(rows).toEqual([{ networks: 33 }]);
  });

  it('deletes networks after 30 days, but never a lock that only an administrator clears', async () => {
    await fail(8);
    await statusOf(password, { ip: '203.0.113.20' });
    await login('wrong', { who: 'ghost@example.org' });
    const id = await accountId();
    const networks = async () => {
      const found = await tenant.db.read
        .selectFrom('account_networks')
        .select('network')
        .where('subject', '=', id)
        .execute();
      return found.map(({ network }) => network);
    };
    const unknown = async () =>
      (
        await sql`SELECT 1 FROM unknown_networks UNION ALL SELECT 1 FROM unknown_guesses`.execute(
          tenant.db.read,
        )
      ).rows.length;
    await tenant.db.transact((tx) =>
      sql`UPDATE account_networks SET locked_permanently = true WHERE network = '198.51.100.0/24'`.execute(
        tx,
      ),
    );
    const nowMs = tenant.clock.nowMs();
    await tenant.db.transact((tx) => pruneLadders(tx, nowMs + 29 * dayMs));
    expect((await networks()).toSorted()).toEqual(['198.51.100.0/24', '203.0.113.0/24']);
    expect(await unknown()).toBeGreaterThan(0);
    await tenant.db.transact((tx) => pruneLadders(tx, nowMs + 31 * dayMs));
    expect(await networks()).toEqual(['198.51.100.0/24']);
    expect(await unknown()).toBe(0);
  });

  it('does not reveal the cause of a refusal', async () => {
    const bodyOf = async (secret: string, who: string) => {
      const { detail, code, status } = (await login(secret, { who })).json();
      return { detail, code, status };
    };
    const wrong = await bodyOf('wrong', adminEmail);
    await liftCap(tenant.db, { name: 'login-email', key: adminEmail });
    const unknown = await bodyOf('wrong', 'unknown@example.org');
    await fail(5);
    const locked = await bodyOf(password, email);
    expect(unknown).toEqual(wrong);
    expect(locked).toEqual(wrong);
  });

  it('only an administrator of the organisation may unlock', async () => {
    const { access_token } = await grant(tenant, email, password);
    const url = `/api/organizations/${SYSTEM_ORGANIZATION_ID}/users/${userId}/unlock`;
    const answer = await tenant.app.inject({ method: 'POST', url, headers: bearer(access_token) });
    expect(answer.statusCode).toBe(403);
    const missing = url.replace(userId, '00000000-0000-0000-0000-00000000ffff');
    const admin = bearer((await grant(tenant)).access_token);
    expect((await tenant.app.inject({ method: 'POST', url: missing, headers: admin })).statusCode).toBe(404);
  });
});

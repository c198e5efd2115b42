import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { liftCap } from '#kit/rate-limit/security-cap.ts';
import { bearer, grant, startTestTenant, type TestTenant, verifyAddress } from '../tenant.fixture.ts';
import { unknownAuditLanes, unknownRecords } from './lockout/unknown-address.ts';
import { recordStatements, type SentStatement } from './statements.fixture.ts';

const password = 'seven quiet lanterns drift';
const attacker = '198.51.100.7';

describe('a sign-in attempt does not reveal whether an account exists', () => {
  let tenant: TestTenant;
  let statements: ReturnType<typeof recordStatements>;
  const ids = new Map<string, string>();

  const login = (email: string, secret: string, remoteAddress = attacker) =>
    tenant.app.inject({
      method: 'POST',
      url: '/api/auth/login',
      remoteAddress,
      payload: { email, password: secret },
    });
  const passMinute = (email: string) => liftCap(tenant.db, { name: 'login-email', key: email });
  const emailOf = (name: string) => `${name}@example.org`;
  const addUser = async (name: string) => {
    const { access_token } = await grant(tenant);
    const created = await tenant.app.inject({
      method: 'POST',
      url: `/api/organizations/${SYSTEM_ORGANIZATION_ID}/users`,
      headers: bearer(access_token),
      payload: { email: emailOf(name), displayName: name, password, roles: ['Auditor'] },
    });
    expect(created.statusCode).toBe(201);
    const { id } = await tenant.db.read
      .selectFrom('platform_users')
      .select('id')
      .where('email', '=', emailOf(name))
      .executeTakeFirstOrThrow();
    ids.set(name, id);
  };
  const change = (name: string, statement: (id: string) => ReturnType<typeof sql>) =>
    tenant.db.transact((tx) => statement(ids.get(name) ?? '').execute(tx));
  /** The statements of one attempt, with the table names of accounts and unknown addresses unified, and its answer. */
  const attempt = async (name: string, secret: string) => {
    await passMinute(emailOf(name));
    statements.take();
    const answer = await login(emailOf(name), secret);
    const { detail, code, status } = answer.json();
    return { sent: statements.take().map(shared), answer: { detail, code, status } };
  };

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_enumeration');
    statements = recordStatements(tenant.db.pool);
    for (const name of ['known', 'locked', 'closed', 'suspended']) await addUser(name);
    for (let i = 0; i < 5; i++) {
      await passMinute(emailOf('locked'));
      await login(emailOf('locked'), 'wrong');
    }
    await login(emailOf('closed'), 'wrong');
    await change('closed', (id) => sql`UPDATE account_guesses SET is_closed = true WHERE subject = ${id}`);
    await change('suspended', (id) => sql`UPDATE platform_users SET status = 'Suspended' WHERE id = ${id}`);
  });
  afterAll(() => tenant.stop());
  beforeEach(() => statements.take());

  it('statements, written rows and answer are equal for known, unknown, locked, closed and suspended accounts', async () => {
    const wrong = await attempt('known', 'wrong');
    expect(wrong.answer).toMatchObject({ status: 401, code: 'INVALID_CREDENTIALS' });
    expect(wrong.sent.filter(({ rowsWritten }) => rowsWritten === 1)).toHaveLength(5);
    expect(wrong.sent.map(({ text }) => text.split(/\s/)[0]?.toLowerCase())).toContain('commit');
    for (const [name, secret] of [
      ['unknown', 'wrong'],
      ['unknown', 'wrong'],
      ['locked', 'wrong'],
      ['locked', password],
      ['closed', 'wrong'],
      ['closed', password],
      ['suspended', 'wrong'],
      ['suspended', password],
    ] as const) {
      expect(await attempt(name, secret), `${name}, ${secret}`).toEqual(wrong);
    }
  });

  it('the failure that locks an account has the same cost as every other failure', async () => {
    await addUser('fifth');
    const seen: unknown[] = [];
    for (let i = 0; i < 6; i++) seen.push(await attempt('fifth', 'wrong'));
    expect(new Set(seen.map((each) => JSON.stringify(each))).size).toBe(1);
  });

  it('limits attempts equally for addresses with and without an account', async () => {
    await addUser('pair');
    const statusesOf = async (name: string) => {
      const statuses: string[] = [];
      for (let i = 0; i < 18; i++) {
        await passMinute(emailOf(name));
        const answer = await login(emailOf(name), 'wrong', `192.0.${i}.1`);
        statuses.push(`${answer.statusCode} ${answer.headers['retry-after'] ?? ''}`);
      }
      return statuses;
    };
    const known = await statusesOf('pair');
    expect(known.slice(15)).toEqual(['429 7200', '429 7200', '429 7200']);
    expect(await statusesOf('ghost')).toEqual(known);
  });

  it('a flood of addresses writes a bounded number of audit events, none with an address', async () => {
    const eventsOf = async () =>
      await tenant.db.read
        .selectFrom('audit_events')
        .select(['details', 'organization_id', 'ip_address'])
        .where(sql<boolean>`details ->> 'reason' = 'unknown-address'`)
        .execute();
    const count = (rows: Awaited<ReturnType<typeof eventsOf>>) =>
      rows.reduce((sum, row) => sum + Number(row.details['occurrences']), 0);
    const before = count(await eventsOf());
    const flood = Array.from({ length: 40 }, (_, i) => login(`flood-${i}@example.org`, 'wrong'));
    for (const answer of await Promise.all(flood)) expect(answer.statusCode).toBe(401);
    const rows = await eventsOf();
    expect(count(rows)).toBe(before + 40);
    // two hours at most, when an hour ended during the test
    expect(rows.length).toBeLessThanOrEqual(2 * unknownAuditLanes);
    expect(new Set(rows.map((row) => row.organization_id))).toEqual(new Set([SYSTEM_ORGANIZATION_ID]));
    const stored = await sql<{ text: string }>`
      SELECT g::text || coalesce(n::text, '') AS text FROM unknown_guesses g
      LEFT JOIN unknown_networks n ON n.subject = g.subject`.execute(tenant.db.read);
    expect(stored.rows.length).toBeGreaterThan(30);
    expect(JSON.stringify([rows, stored.rows])).not.toContain('flood');
  });

  it('a flood of addresses displaces no lock of an account', async () => {
    expect((await login(emailOf('locked'), password)).statusCode).toBe(401);
    await passMinute(emailOf('locked'));
    expect((await login(emailOf('locked'), password, '203.0.113.5')).statusCode).toBe(200);
    expect(unknownRecords).toBe(8_192);
  });

  it('records failures in the home organisation of the account, independent of the last used organisation', async () => {
    await addUser('mover');
    await verifyAddress(tenant, emailOf('mover'));
    const admin = bearer((await grant(tenant)).access_token);
    const made = await tenant.app.inject({
      method: 'POST',
      url: '/api/organizations',
      headers: admin,
      payload: { name: 'Later', subdomain: 'later' },
    });
    const later = made.json().id;
    await change(
      'mover',
      (id) => sql`INSERT INTO user_identities
        (id, organization_id, platform_user_id, email, display_name, roles, status, provisioned_via, created_at)
        VALUES (gen_random_uuid(), ${later}, ${id}, 'mover@example.org', 'mover', '{User}', 'Active', 'Local', now())`,
    );
    const home = await grant(tenant, emailOf('mover'), password);
    const switched = await tenant.app.inject({
      method: 'POST',
      url: '/api/auth/switch-org',
      headers: bearer(home.access_token),
      payload: { organizationId: later },
    });
    expect(switched.statusCode).toBe(200);
    await login(emailOf('mover'), 'wrong');
    const failed = await tenant.db.read
      .selectFrom('audit_events')
      .select('organization_id')
      .where('platform_user_id', '=', ids.get('mover') ?? '')
      .where('event_type', '=', 'LoginFailed')
      .execute();
    expect(failed).toEqual([{ organization_id: SYSTEM_ORGANIZATION_ID }]);
  });
});

/** Statements of the periodic refresh of the revocation view are ignored. */
function shared({ text, rowsWritten }: SentStatement): SentStatement {
  return { text: text.replaceAll(/\b(account|unknown)_(guesses|networks)\b/g, 'subject_$2'), rowsWritten };
}

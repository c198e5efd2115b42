import { sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { accountHomes } from './0009-account-homes.ts';
import { migrations } from './list.ts';

type Db = Database<Record<never, never>>;

const { log, telemetry } = testRuntime('tenant');
const open = (url: string, list: typeof migrations): Promise<Db> =>
  openDatabase({ url, schema: 'tenant', log, telemetry, migrations: list });
const earlier = migrations.slice(0, migrations.indexOf(accountHomes));

const system = '00000000-0000-0000-0000-000000000001';
/** A UUID of version 7 whose time is the given number of seconds after an instant. */
const id = (name: string, atSeconds: number) => {
  const time = (0x0190_0000_0000 + atSeconds * 1000).toString(16).padStart(12, '0');
  const tail = Buffer.from(name).toString('hex').padStart(12, '0').slice(-12);
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${tail}`;
};
const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000);
const [attack, beta, gamma, gone] = ['attack', 'beta', 'gamma', 'gone'].map((name) => id(name, 0));

interface Member {
  readonly account: string;
  readonly organization: string | undefined;
  readonly email: string;
  /** When the membership was created. */
  readonly made: number;
  /** When the user was added; later than the creation when it was removed in between. */
  readonly added?: number;
  readonly roles?: string;
  readonly status?: string;
  /** The session was used at the time of the migration. */
  readonly isInUse?: boolean;
}

async function insertAccount(db: Db, email: string, made: number, verified = false): Promise<string> {
  const account = id(`a${email}`, made);
  await db.transact((tx) =>
    sql`INSERT INTO platform_users (id, email, display_name, password_hash, email_verified, status, default_organization_id,
        created_at)
      VALUES (${account}, ${email}, 'A User', ${`hash of ${email}`}, ${verified}, 'Active', ${beta}, ${at(made)})`.execute(
      tx,
    ),
  );
  return account;
}

async function insertMember(db: Db, member: Member): Promise<string> {
  const { account, organization, email, made, added = made } = member;
  const identity = id(`i${organization}${email}`.replace(/[^a-z0-9]/g, '').slice(-6), made);
  await db.transact(async (tx) => {
    await sql`INSERT INTO user_identities (id, organization_id, platform_user_id, email, display_name, roles, status,
        provisioned_via, created_at)
      VALUES (${identity}, ${organization}, ${account}, ${email}, 'A User',
        ${member.roles ?? '{User}'}::text[], ${member.status ?? 'Active'}, 'AdminCreated', ${at(added)})`.execute(
      tx,
    );
    await sql`INSERT INTO refresh_families (id, generation, last_rotated_at, platform_user_id, identity_id, organization_id,
        tier, amr, auth_time, created_at, expires_at)
      VALUES (${identity}, 0, now() + make_interval(hours => ${member.isInUse === true ? 1 : -1}), ${account}, ${identity}, ${organization}, 'platform', '{pwd}', now(), now(),
        now() + interval '1 day')`.execute(tx);
  });
  return identity;
}

const rowsOf = async (db: Db, query: string) =>
  (await sql.raw<Record<string, unknown>>(query).execute(db.read)).rows;

describe('accounts of an earlier release', () => {
  let db: Db;
  let counts: Record<string, unknown> | undefined;
  const ids: Record<string, string> = {};
  const accountOf = async (identity: string | undefined) =>
    (
      await rowsOf(
        db,
        `SELECT p.id, p.email, p.password_hash, p.email_verified, p.home_organization_id AS home,
          p.default_organization_id AS last FROM platform_users p JOIN user_identities i ON i.platform_user_id = p.id
        WHERE i.id = '${identity}'`,
      )
    )[0];
  const countAll = (of: Db) =>
    rowsOf(
      of,
      `SELECT (SELECT count(*) FROM user_identities) AS identities, (SELECT count(*) FROM refresh_families) AS families,
        (SELECT count(*) FROM organizations) AS organizations`,
    );

  beforeAll(async () => {
    const url = await testDatabase('tenant_homes');
    const before = await open(url, earlier);
    await before.transact((tx) =>
      sql`INSERT INTO organizations (id, name, subdomain, status, org_type, is_platform_org, created_at) VALUES
        (${system}, 'System Admin', 'system', 'Active', 'Standard', true, ${at(0)}),
        (${attack}, 'Attack', 'attack', 'Active', 'Standard', false, ${at(0)}),
        (${beta}, 'Beta', 'beta', 'Active', 'Standard', false, ${at(0)}),
        (${gamma}, 'Gamma', 'gamma', 'Active', 'Standard', false, ${at(0)}),
        (${gone}, 'Gone', 'gone', 'Active', 'Standard', false, ${at(0)})`.execute(tx),
    );
    const member = async (name: string, details: Member) => {
      ids[name] = await insertMember(before, details);
    };
    // created by attack, removed there and added again after beta had added the address
    const ceo = await insertAccount(before, 'ceo@x', 100);
    const chief = { account: ceo, email: 'ceo@x', roles: '{Administrator}' };
    await member('ceo in attack', { ...chief, organization: attack, made: 100, added: 900 });
    await member('ceo in beta', { ...chief, organization: beta, made: 500, isInUse: true });
    await member('ceo in gamma', { ...chief, organization: gamma, made: 600, status: 'Deleted' });
    // the organisation that created it is purged, together with its membership
    const left = await insertAccount(before, 'left@x', 100);
    await member('left in beta', { account: left, organization: beta, email: 'left@x', made: 700 });
    await insertAccount(before, 'nowhere@x', 100);
    const only = await insertAccount(before, 'boss@x', 300);
    const boss = { account: only, organization: gamma, email: 'boss@x', roles: '{Administrator}' };
    await member('boss in gamma', { ...boss, made: 300 });
    const shared = await insertAccount(before, 'shared@x', 400);
    await member('shared in gamma', { account: shared, organization: beta, email: 'shared@x', made: 400 });
    await member('shared in beta', { account: shared, organization: gamma, email: 'shared@x', made: 450 });
    const known = await insertAccount(before, 'known@x', 100, true);
    for (const [name, organization, made] of [
      ['known in system', system, 100],
      ['known in beta', beta, 200],
    ] as const) {
      const roles = organization === system ? '{SystemAdmin}' : '{User}';
      await member(name, { account: known, organization, email: 'known@x', made, roles });
    }
    await before.transact((tx) =>
      sql`INSERT INTO inbox_entries (id, platform_user_id, source_event_id, category, severity, correlation_key, title,
          channel_hints, writer_service_id, occurred_at)
        SELECT gen_random_uuid(), ${ceo}, gen_random_uuid(), 'Membership', 'Info', 'membership:' || o.id, o.name, '{Inbox}',
          'service-tenant', now() FROM organizations o WHERE o.id IN (${attack}, ${beta})`.execute(tx),
    );
    [counts] = await countAll(before);
    await before.close();
    db = await open(url, migrations);
    // a second start applies no migration
    await (await open(url, migrations)).close();
  });
  afterAll(() => db.close());

  it('no membership and no session is lost', async () => {
    expect(await countAll(db)).toEqual([counts]);
  });

  it('the organisation that created an account keeps it with its password, also when it added the user again later', async () => {
    expect(await accountOf(ids['ceo in attack'])).toMatchObject({
      email: 'ceo@x',
      password_hash: 'hash of ceo@x',
      home: attack,
      last: attack,
    });
    expect(await accountOf(ids['boss in gamma'])).toMatchObject({
      password_hash: 'hash of boss@x',
      home: gamma,
    });
  });

  it('every other membership gets an account without a password; those of removed users too', async () => {
    const kept = (await accountOf(ids['ceo in attack']))?.['id'];
    for (const [name, home] of [
      ['ceo in beta', beta],
      ['ceo in gamma', gamma],
    ] as const) {
      const account = await accountOf(ids[name]);
      expect(account, name).toMatchObject({
        email: 'ceo@x',
        password_hash: null,
        email_verified: false,
        home,
      });
      expect(account?.['id']).not.toBe(kept);
      const [family] = await rowsOf(
        db,
        `SELECT platform_user_id FROM refresh_families WHERE id = '${ids[name]}'`,
      );
      expect(family).toEqual({ platform_user_id: account?.['id'] });
    }
  });

  it('the password of an account whose organisation was purged gives no access any more', async () => {
    expect(await accountOf(ids['left in beta'])).toMatchObject({ password_hash: null, home: beta });
    const orphan = `SELECT password_hash, home_organization_id FROM platform_users WHERE email = 'nowhere@x'`;
    expect(await rowsOf(db, orphan)).toEqual([{ password_hash: null, home_organization_id: null }]);
  });

  it('a verified account keeps its memberships, sessions and password', async () => {
    const account = await accountOf(ids['known in system']);
    expect(account).toMatchObject({
      password_hash: 'hash of known@x',
      email_verified: true,
      home: null,
      last: beta,
    });
    expect(await accountOf(ids['known in beta'])).toEqual(account);
  });

  it('only the sessions of memberships that lost their password end', async () => {
    const ended = [
      ids['ceo in beta'],
      ids['ceo in gamma'],
      ids['left in beta'],
      ids['shared in beta'],
    ].toSorted();
    const families = await rowsOf(
      db,
      'SELECT identity_id AS id, revoke_reason FROM refresh_families WHERE revoked_at IS NOT NULL ORDER BY identity_id',
    );
    expect(families).toEqual(ended.map((each) => ({ id: each, revoke_reason: 'account-separated' })));
    const revoked = await rowsOf(
      db,
      `SELECT kind, key FROM revocations WHERE expires_at_ms - not_before_ms BETWEEN 28860000 AND 28860050
        AND abs(not_before_ms - extract(epoch FROM now()) * 1000) < 600000 ORDER BY kind, key`,
    );
    const living = ended.filter((each) => each !== ids['ceo in gamma']);
    expect(revoked).toEqual([
      { kind: 'family', key: ids['ceo in beta'] },
      ...living.map((key) => ({ kind: 'identity', key })),
    ]);
  });

  it('inbox entries about a membership move with it', async () => {
    const titles = (identity: string | undefined) =>
      rowsOf(
        db,
        `SELECT title FROM inbox_entries e JOIN user_identities i ON i.platform_user_id = e.platform_user_id
        WHERE i.id = '${identity}' AND icon_key IS NULL`,
      );
    expect(await titles(ids['ceo in attack'])).toEqual([{ title: 'Attack' }]);
    expect(await titles(ids['ceo in beta'])).toEqual([{ title: 'Beta' }]);
  });

  it('administrators are notified; for an organisation without one who can sign in, system administrators are', async () => {
    const notes = await rowsOf(
      db,
      `SELECT i.email, i.organization_id AS of, e.correlation_key AS about, e.severity, e.title, left(e.summary, 7) AS users
      FROM inbox_entries e JOIN user_identities i ON i.platform_user_id = e.platform_user_id
      WHERE e.icon_key = 'membership.separated' AND i.organization_id IN ('${system}', '${beta}', '${gamma}', '${attack}')
        AND 'known in beta' <> i.display_name ORDER BY i.email, i.organization_id, about`,
    );
    const note = { severity: 'ActionRequired' };
    const ofBeta = {
      ...note,
      about: `membership:${beta}`,
      title: 'Users of Beta need a new password',
      users: '2 users',
    };
    const ofGamma = {
      ...note,
      about: `membership:${gamma}`,
      title: 'Users of Gamma need a new password',
      users: '1 users',
    };
    expect(notes).toEqual([
      { ...ofGamma, email: 'boss@x', of: gamma },
      { ...ofBeta, email: 'ceo@x', of: beta },
      { ...ofBeta, email: 'known@x', of: system },
      { ...ofBeta, email: 'known@x', of: beta },
    ]);
    const events = await rowsOf(
      db,
      `SELECT e.organization_id AS of, e.identity_id AS id FROM audit_events e
      JOIN user_identities i ON i.id = e.identity_id AND i.platform_user_id = e.platform_user_id
      WHERE event_type = 'UserUpdatedInOrganization' AND details ->> 'reason' = 'account-separated' ORDER BY e.identity_id`,
    );
    const separated = { 'ceo in beta': beta, 'left in beta': beta, 'shared in beta': gamma };
    expect(events).toEqual(
      Object.entries(separated)
        .map(([name, of]) => ({ of, id: ids[name] }))
        .toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1)),
    );
  });

  it('an address is unique among verified accounts, and among the unverified accounts of one organisation', async () => {
    const insert = (email: string, verified: boolean, home: string | undefined, hash: string | null) =>
      db.transact((tx) =>
        sql`INSERT INTO platform_users (id, email, display_name, password_hash, email_verified, status,
            home_organization_id, created_at)
          VALUES (gen_random_uuid(), ${email}, 'X', ${hash}, ${verified}, 'Active', ${home}, now())`.execute(
          tx,
        ),
      );
    await expect(insert('known@x', true, beta, 'h')).rejects.toThrow('platform_users_verified_email');
    await expect(insert('ceo@x', false, beta, 'h')).rejects.toThrow('platform_users_unverified_email');
    // as a process of an earlier release would insert it
    await expect(insert('new@x', false, undefined, 'h')).rejects.toThrow('platform_users_home');
    await insert('known@x', false, beta, 'h');
  });
});

it('the number of statements does not grow with the number of accounts', async () => {
  const url = await testDatabase('tenant_homes_many');
  const before = await open(url, earlier);
  await before.transact(async (tx) => {
    await sql`INSERT INTO organizations (id, name, subdomain, status, org_type, created_at)
      SELECT gen_random_uuid(), 'Org ' || n, 'org-' || n, 'Active', 'Standard', now()
      FROM generate_series(1, 4) n`.execute(tx);
    await sql`INSERT INTO platform_users (id, email, display_name, password_hash, status, created_at)
      SELECT gen_random_uuid(), 'u' || n || '@x', 'U', 'h', 'Active', now() - n * interval '1 second'
      FROM generate_series(1, 250) n`.execute(tx);
    await sql`INSERT INTO user_identities (id, organization_id, platform_user_id, email, display_name, roles, status,
        provisioned_via, created_at)
      SELECT gen_random_uuid(), o.id, p.id, p.email, 'U', '{User}', 'Active', 'AdminCreated',
        p.created_at + (row_number() OVER (PARTITION BY p.id ORDER BY o.id) - 1) * interval '1 hour'
      FROM platform_users p CROSS JOIN organizations o`.execute(tx);
  });
  await before.close();
  const statements: string[] = [];
  const query = vi.spyOn(pg.Client.prototype, 'query');
  const after = await open(url, migrations);
  for (const [statement] of query.mock.calls) statements.push(JSON.stringify(statement));
  query.mockRestore();
  const [accounts] = await rowsOf(
    after,
    `SELECT count(*) AS total, count(password_hash) AS with_password, count(DISTINCT (email, home_organization_id)) AS pairs
    FROM platform_users`,
  );
  await after.close();
  expect(accounts).toEqual({ total: 1_000, with_password: 250, pairs: 1_000 });
  expect(statements.length).toBeLessThan(100);
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freePorts } from '../../components/standalone/state/ports.ts';
import { type Accounts, createAccounts } from '../harness/account.ts';
import { type Api, createApi } from '../harness/api.ts';
import { type OwnProcess, startLike, startOf } from '../harness/running-process.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { type GivenParts, startGivenParts } from './given-parts.ts';
import { type HeldCommits, type HeldSide, startHeldCommits } from './held-commits.ts';

const isFull = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const password = 'marble orchard seldom rains';

/** A request by which a person uses something that acts once. */
interface Use {
  readonly path: string;
  readonly json: object;
}

/**
 * A tenant service is killed while the commit that consumes a single-use thing is under way. Where the database never
 * got the commit, another replica accepts the thing, once; where only the answer is lost, none does.
 */
describe.runIf(process.platform === 'linux')('single-use things and a tenant service that is killed', () => {
  let dataDir = '';
  let parts: GivenParts;
  let system: LocalSystem;
  let commits: HeldCommits;
  let database: pg.Client;
  let gateway: OwnProcess | undefined;
  let victim: OwnProcess | undefined;
  let victimSettings: Readonly<Record<string, string>> = {};
  /** Through the tenant service that is killed, and through the one that stays. */
  let doomed: Api;
  let api: Api;
  let accounts: Accounts;
  let count = 0;

  const startOfOne = (name: string) =>
    startOf(system.current().processes.find((one) => one.name === name)?.pid);

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-once-'));
    parts = await startGivenParts();
    system = await startSystem({ dataDir, args: ['--processes'], env: parts.env, deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    accounts = createAccounts(api, dataDir);
    const start = startOfOne('tenant');
    commits = await startHeldCommits(start.env['DATABASE_URL'] ?? '');
    database = new pg.Client({ connectionString: parts.env.DATABASE_URL });
    await database.connect();
    const [ops = '', https = '', grpc = '', mtls = '', internal = '', gatewayOps = '', port = ''] = (
      await freePorts(7)
    ).map(String);
    victimSettings = {
      CHANCERY_OPS_PORT: ops,
      CHANCERY_HTTPS_PORT: https,
      CHANCERY_GRPC_PORT: grpc,
      CHANCERY_TENANT_MTLS_PORT: mtls,
      CHANCERY_TENANT_INTERNAL_PORT: internal,
      DATABASE_URL: commits.url,
    };
    gateway = await startLike(startOfOne('gateway'), {
      CHANCERY_OPS_PORT: gatewayOps,
      CHANCERY_GATEWAY_PORT: port,
      CHANCERY_TENANT_HTTPS: `127.0.0.1:${https}`,
    });
    doomed = createApi(`http://127.0.0.1:${port}`);
  }, 300_000);
  afterAll(async () => {
    await gateway?.kill();
    await victim?.kill();
    await commits?.close();
    await database?.end();
    await system?.stop();
    await parts?.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });
  beforeEach(async () => {
    victim = await startLike(startOfOne('tenant'), victimSettings);
  });

  async function verified(): Promise<string> {
    const email = `person-${count++}@example.org`;
    await accounts.create(email, password);
    return email;
  }
  async function withApp() {
    const email = await verified();
    const { access_token: token } = await accounts.signIn(email, password);
    const { code, backupCodes } = await accounts.addApp(token);
    return { email, code, backupCode: backupCodes[0] ?? '' };
  }
  const loginToken = (email: string) => accounts.loginToken(email, password);

  /** Uses a thing, and kills the service while the commit of its consumption is held. */
  async function useAndKill({ path, json }: Use, statement: string, side: HeldSide): Promise<void> {
    const held = commits.hold(statement, side);
    const lost = doomed.send('POST', path, { json }).then(
      ({ status }) => status,
      () => 0,
    );
    await held;
    await victim?.kill();
    // The person has no answer, or learns that the service is away.
    expect([0, 502, 503, 504]).toContain(await lost);
  }
  const statusOf = async ({ path, json }: Use) => (await api.send('POST', path, { json })).status;
  const countOf = async (query: string, email: string) =>
    Number((await database.query<{ count: string }>(query, [email])).rows[0]?.count);
  const sessionsOf = (email: string) =>
    countOf(
      `select count(*) from tenant.refresh_families f join tenant.platform_users p on p.id = f.platform_user_id
        where p.email = $1`,
      email,
    );

  const secrets = '"one_time_secrets"';
  describe.each([
    ['the database never got the commit', 'before'],
    ['the answer is lost', 'after'],
  ] as const)('when %s', (_, side) => {
    const rest = side === 'before' ? 'right' : 'used';
    // In the short form one of them shows that a commit which was not made leaves everything as it was.
    const onlyLong = test.runIf(isFull || side === 'after');
    const judge = async (use: Use, expected: { readonly right: number; readonly used: number }) => {
      expect(await statusOf(use)).toBe(expected[rest]);
      expect(await statusOf(use)).toBe(expected.used);
    };

    onlyLong('the link that confirms an address acts once', async () => {
      const email = `person-${count++}@example.org`;
      await accounts.register(email, password);
      const use = {
        path: '/api/auth/verify-email',
        json: { token: await accounts.tokenOf(email, 'verify-email') },
      };
      await useAndKill(use, secrets, side);
      await judge(use, { right: 200, used: 400 });
    });

    test('the link that sets a new password acts once, whole', async () => {
      const email = await verified();
      await accounts.post('/api/auth/password/forgot', { email }, undefined, 202);
      const newPassword = 'seven quiet lanterns drift';
      const json = { token: await accounts.tokenOf(email, 'reset-password'), newPassword };
      const use = { path: '/api/auth/password/reset', json };
      await useAndKill(use, secrets, side);
      const isReset = side === 'after';
      const present = isReset ? newPassword : password;
      await accounts.signIn(email, present);
      await judge(use, { right: 204, used: 400 });
    });

    onlyLong('the code of an app, and the login token, act once', async () => {
      const { email, code } = await withApp();
      const json = { login_token: await loginToken(email), code };
      const use = { path: '/api/auth/verify-2fa', json };
      const before = await sessionsOf(email);
      await useAndKill(use, 'second_factors', side);
      await judge(use, { right: 200, used: 401 });
      const again = { path: use.path, json: { login_token: await loginToken(email), code } };
      expect(await statusOf(again)).toBe(401);
      expect(await sessionsOf(email)).toBe(before + 1);
    });

    onlyLong('a backup code acts once', async () => {
      const { email, backupCode: code } = await withApp();
      const json = { login_token: await loginToken(email), code, is_backup_code: true };
      const use = { path: '/api/auth/verify-2fa', json };
      const before = await sessionsOf(email);
      await useAndKill(use, 'backup_codes', side);
      await judge(use, { right: 200, used: 401 });
      const again = { path: use.path, json: { ...json, login_token: await loginToken(email) } };
      expect(await statusOf(again)).toBe(401);
      expect(await sessionsOf(email)).toBe(before + 1);
    });
  });
});

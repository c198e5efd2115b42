import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { lockAccount } from '../../people/accounts/store.ts';
import { grant, startReplica, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { endSessions } from '../recovery/recover.ts';
import { recordStatements } from '../statements.fixture.ts';
import { origin, SoftAuthenticator } from './authenticator.fixture.ts';
import { assertion, claimsOf, passkeyClient, register } from './passkeys.fixture.ts';

const own = '/api/auth/public/passkey/add';

describe('passkeys: what a challenge is bound to, what is recorded, and what runs at the same time', () => {
  let tenant: TestTenant;
  let other: TestTenant;
  const { post, call, login, signUp, signIn, add, person } = passkeyClient(() => tenant);
  const accountOf = (token: string): string => claimsOf(token).platform_user_id;
  const change = (statement: ReturnType<typeof sql>) => tenant.db.transact((tx) => statement.execute(tx));
  /** Audit events of an account, the oldest first. */
  const eventsOf = async (accountId: string) => {
    const rows = await tenant.db.read
      .selectFrom('audit_events')
      .select(['event_type', 'success', 'details'])
      .where('platform_user_id', '=', accountId)
      .orderBy('id')
      .execute();
    return rows.map((row) => ({ type: row.event_type, success: row.success, details: row.details }));
  };
  const refused = { type: 'LoginFailed', success: false, details: { reason: 'passkey' } };

  /** Holds the row of an account, runs `act` while a request waits for it, and then `end` in the same transaction. */
  const whileHeld = async <T>(
    accountId: string,
    request: () => PromiseLike<T>,
    end: (tx: Parameters<Parameters<TestTenant['db']['transact']>[0]>[0]) => Promise<unknown>,
  ): Promise<T> => {
    const waiting = await tenant.db.transact(async (tx) => {
      await lockAccount(tx, accountId);
      const { rows } = await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(tx);
      const answer = Promise.resolve(request());
      const isWaiting = async () => {
        const blocked = await sql`
          SELECT FROM pg_stat_activity WHERE ${rows[0]?.pid}::int = ANY (pg_blocking_pids(pid))`.execute(
          tenant.db.read,
        );
        return blocked.rows.length > 0 ? true : undefined;
      };
      await waitFor(isWaiting, { what: 'the request to wait for the account' });
      await end(tx);
      return { answer };
    });
    return waiting.answer;
  };

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_passkey_bindings', {
      CHANCERY_PUBLIC_ORG_ENABLED: 'true',
      CHANCERY_BASE_URL: origin,
      CHANCERY_PASSKEY_RP_NAME: 'Land registry',
    });
    other = await startReplica(tenant.files);
  });
  afterAll(async () => {
    await other.app.close();
    await other.db.close();
    await tenant.stop();
  });

  it('options of a sign-up and of an enrolment are those of the installation and the account', async () => {
    const signUpOptions = (await post(`${register}/options`, { display_name: 'Ada' })).json().options;
    expect(signUpOptions).toMatchObject({
      rp: { id: 'ledger.example.org', name: 'Land registry' },
      user: { name: 'Ada', displayName: 'Ada' },
      pubKeyCredParams: [-7, -8, -257].map((alg) => ({ alg, type: 'public-key' })),
      timeout: 300_000,
      attestation: 'none',
      excludeCredentials: [],
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    });
    expect(Buffer.from(signUpOptions.challenge, 'base64url')).toHaveLength(32);
    expect(Buffer.from(signUpOptions.user.id, 'base64url')).toHaveLength(16);
    const { email, token } = await person();
    const key = new SoftAuthenticator();
    await add(key, token);
    const { options } = (await post(`${own}/options`, { display_name: 'Laptop' }, token)).json();
    expect(options).toMatchObject({
      user: { name: email, displayName: 'Ada' },
      excludeCredentials: [{ id: key.id }],
      authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
    });
    const signInOptions = (await post(`${assertion}/options`)).json().options;
    expect(signInOptions).toMatchObject({ userVerification: 'required', rpId: 'ledger.example.org' });
  });

  it.each(['ES256', 'EdDSA', 'RS256'] as const)('%s signs up and in', async (algorithm) => {
    const key = new SoftAuthenticator(0, algorithm);
    expect((await signUp(key)).statusCode).toBe(200);
    expect((await signIn(key)).statusCode).toBe(200);
    expect((await signIn(key, { spoilsSignature: true })).statusCode).toBe(401);
  });

  it('an algorithm that was not offered is refused', async () => {
    const answer = await signUp(new SoftAuthenticator(0, 'ES384'));
    expect([answer.statusCode, answer.json().code]).toEqual([400, 'INVALID_ATTESTATION']);
  });

  it('a challenge of an enrolment holds for its account, and once', async () => {
    const [one, two] = [await person(), await person()];
    const key = new SoftAuthenticator();
    const { transaction_id, options } = (
      await post(`${own}/options`, { display_name: 'Laptop' }, one.token)
    ).json();
    const body = { transaction_id, attestation_response: key.create(options) };
    const foreign = await post(`${own}/verify`, body, two.token);
    expect([foreign.statusCode, foreign.json().code]).toEqual([400, 'INVALID_ATTESTATION']);
    const asSignUp = await post(`${register}/verify`, body);
    expect([asSignUp.statusCode, asSignUp.json().code]).toEqual([400, 'INVALID_ATTESTATION']);
    expect((await post(`${own}/verify`, body, one.token)).statusCode).toBe(201);
    const again = await post(`${own}/verify`, body, one.token);
    expect([again.statusCode, again.json().code]).toEqual([400, 'INVALID_ATTESTATION']);
  });

  it('of 50 parallel uses of one attestation on two replicas one makes an account', async () => {
    const key = new SoftAuthenticator();
    const { transaction_id, options } = (await post(`${register}/options`, { display_name: 'Once' })).json();
    const body = { transaction_id, attestation_response: key.create(options) };
    const uses = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        post(`${register}/verify`, body, undefined, index % 2 === 0 ? tenant : other),
      ),
    );
    expect(uses.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    expect(new Set(uses.map(({ statusCode }) => statusCode))).toEqual(new Set([200, 400]));
    const made = await tenant.db.read
      .selectFrom('platform_users')
      .select('id')
      .where('display_name', '=', 'Once')
      .execute();
    expect(made).toHaveLength(1);
  });

  it('a challenge of a second step holds for the login token that it was begun with', async () => {
    const { email, token } = await person();
    const key = new SoftAuthenticator();
    await add(key, token);
    const begin = async () => (await login(email)).json().login_token as string;
    const [first, second] = [await begin(), await begin()];
    const { transaction_id, options } = (
      await post('/api/auth/verify-passkey/options', { login_token: first })
    ).json();
    const answer = { transaction_id, assertion_response: key.get(options) };
    const crossed = await post('/api/auth/verify-passkey', { login_token: second, ...answer });
    expect([crossed.statusCode, crossed.json().code]).toEqual([401, 'INVALID_ASSERTION']);
    const right = await post('/api/auth/verify-passkey', { login_token: first, ...answer });
    expect(right.statusCode).toBe(200);
    expect(right.json().signals).toMatchObject({
      rp_id: 'ledger.example.org',
      name: email,
      display_name: 'Ada',
      all_accepted_credential_ids: [key.id],
    });
  });

  it('answers and the list carry the same signals, without disabled passkeys', async () => {
    const [first, second] = [new SoftAuthenticator(), new SoftAuthenticator(5)];
    const signedUp = (await signUp(first, { display_name: 'Ben' })).json();
    await add(second, signedUp.access_token);
    const { signals } = (await signIn(first)).json();
    expect(signals).toEqual({
      rp_id: 'ledger.example.org',
      user_id: first.userHandle,
      name: 'Ben',
      display_name: 'Ben',
      all_accepted_credential_ids: [first.id, second.id],
    });
    expect((await signIn(second)).statusCode).toBe(401);
    const list = (await call('GET', '/api/passkey/credentials', signedUp.access_token)).json();
    expect(list).toMatchObject({ ...signals, all_accepted_credential_ids: [first.id] });
    const { options } = (
      await post(`${own}/options`, { display_name: 'Laptop' }, signedUp.access_token)
    ).json();
    expect(options.excludeCredentials).toMatchObject([{ id: first.id }]);
  });

  it('a refused passkey is in the audit log of its account, and a disabled one as such', async () => {
    const key = new SoftAuthenticator(5);
    const accountId = accountOf((await signUp(key)).json().access_token);
    const from = (await eventsOf(accountId)).length;
    await signIn(key, { spoilsSignature: true });
    await signIn(new SoftAuthenticator());
    expect((await eventsOf(accountId)).slice(from)).toEqual([refused]);
    key.counter = 6;
    await signIn(key);
    // A counter that stands still is that of a copy, too.
    await signIn(key);
    await signIn(key);
    expect((await eventsOf(accountId)).slice(from + 1)).toMatchObject([
      { type: 'Login', success: true, details: { method: 'passkey' } },
      { type: 'PassKeyAuthentication', success: false, details: { event: 'disabled' } },
      refused,
    ]);
  });

  it('an account that is suspended, or is a member of nothing, is not signed in', async () => {
    const key = new SoftAuthenticator();
    const accountId = accountOf((await signUp(key)).json().access_token);
    await change(sql`UPDATE platform_users SET status = 'Suspended' WHERE id = ${accountId}`);
    expect((await signIn(key)).json()).toMatchObject({ status: 401, code: 'INVALID_ASSERTION' });
    await change(sql`UPDATE platform_users SET status = 'Active' WHERE id = ${accountId}`);
    await change(sql`UPDATE user_identities SET status = 'Suspended' WHERE platform_user_id = ${accountId}`);
    expect((await signIn(key)).json()).toMatchObject({ status: 401, code: 'INVALID_ASSERTION' });
    expect((await eventsOf(accountId)).slice(-2)).toEqual([refused, refused]);
    await change(sql`UPDATE user_identities SET status = 'Active' WHERE platform_user_id = ${accountId}`);
    expect((await signIn(key)).statusCode).toBe(200);
  });

  it('only the tier consumer is taken from a request', async () => {
    const key = new SoftAuthenticator();
    await add(key, (await grant(tenant)).access_token);
    const tierOf = async (extra: object) => claimsOf((await signIn(key, {}, extra)).json().access_token).tier;
    expect(await tierOf({})).toBe('platform');
    expect(await tierOf({ tier: 'consumer' })).toBe('consumer');
    const citizen = new SoftAuthenticator();
    await signUp(citizen);
    const answer = await signIn(citizen, {}, { tier: 'platform' });
    expect(claimsOf(answer.json().access_token).tier).toBe('consumer');
  });

  it('a passkey of another person is not found', async () => {
    const [one, two] = [new SoftAuthenticator(), new SoftAuthenticator()];
    const owner = (await signUp(one)).json().access_token;
    const stranger = (await signUp(two)).json().access_token;
    const { credentials } = (await call('GET', '/api/passkey/credentials', owner)).json();
    const path = `/api/passkey/credentials/${credentials[0].id}`;
    expect((await call('DELETE', path, stranger)).json()).toMatchObject({
      status: 404,
      code: 'PASSKEY_NOT_FOUND',
    });
    expect((await signIn(one)).statusCode).toBe(200);
  });

  it('options cost the same statements and rows for known and unknown addresses', async () => {
    const { email } = await person();
    const statements = recordStatements(tenant.db.pool);
    const costOf = async (url: string, body: object) => {
      statements.take();
      expect((await post(url, body)).statusCode).toBe(200);
      return statements.take();
    };
    for (const [url, body] of [
      [`${register}/options`, { display_name: 'Eve' }],
      [`${assertion}/options`, {}],
    ] as const) {
      const known = await costOf(url, { ...body, email });
      expect(known.filter(({ rowsWritten }) => rowsWritten > 0)).toHaveLength(1);
      expect(await costOf(url, { ...body, email: 'nobody@example.org' })).toEqual(known);
      expect(await costOf(url, body)).toEqual(known);
    }
  });

  it('no passkey is added behind the end of the session', async () => {
    const { token } = await person();
    const accountId = accountOf(token);
    const key = new SoftAuthenticator();
    const { transaction_id, options } = (
      await post(`${own}/options`, { display_name: 'Laptop' }, token)
    ).json();
    const body = { transaction_id, attestation_response: key.create(options) };
    const atMs = tenant.clock.nowMs();
    const answer = await whileHeld(
      accountId,
      () => post(`${own}/verify`, body, token),
      (tx) => endSessions(tx, accountId, { reason: 'password-reset', atMs }),
    );
    expect([answer.statusCode, answer.json().code]).toEqual([401, 'SESSION_ENDED']);
    expect((await signIn(key)).json().code).toBe('UNKNOWN_CREDENTIAL');
  });

  it('a sign-in locks the account before its passkey, as a removal does', async () => {
    const key = new SoftAuthenticator();
    const accountId = accountOf((await signUp(key)).json().access_token);
    const answer = await whileHeld(
      accountId,
      () => signIn(key),
      (tx) => sql`SELECT FROM passkeys WHERE platform_user_id = ${accountId} FOR UPDATE NOWAIT`.execute(tx),
    );
    expect(answer.statusCode).toBe(200);
  });

  it('an answer of more than 64 KiB is not read', async () => {
    const { transaction_id, options } = (await post(`${assertion}/options`)).json();
    const assertion_response = new SoftAuthenticator().get(options);
    assertion_response.response.signature = 'A'.repeat(65_536);
    expect((await post(`${assertion}/verify`, { transaction_id, assertion_response })).statusCode).toBe(413);
  });
});

import { decodeJwt } from 'jose';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer, grant, startTestTenant, type TestTenant, type TokenBody } from '../tenant.fixture.ts';

describe('acr follows the authentication times that the server stored', () => {
  let tenant: TestTenant;
  beforeAll(async () => {
    tenant = await startTestTenant('tenant_strength');
  });
  afterAll(() => tenant.stop());

  const refreshed = async (tokens: TokenBody): Promise<TokenBody> => {
    const answer = await tenant.app.inject({
      method: 'POST',
      url: '/api/auth/token/refresh',
      payload: { refreshToken: tokens.refresh_token },
    });
    expect(answer.statusCode).toBe(200);
    return answer.json();
  };
  const familyOf = async (tokens: TokenBody) => {
    const family = tenant.db.read
      .selectFrom('refresh_families')
      .select(['basic_proof_at', 'strong_proof_at', 'auth_time'])
      .where('id', '=', String(decodeJwt(tokens.access_token)['sid']));
    return await family.executeTakeFirstOrThrow();
  };
  const stamp = (tokens: TokenBody, amr: readonly string[], strongAt: Date | null) =>
    tenant.db.transact((tx) =>
      sql`UPDATE refresh_families SET amr = ${[...amr]}, strong_proof_at = ${strongAt}
        WHERE id = ${String(decodeJwt(tokens.access_token)['sid'])}`.execute(tx),
    );

  it('a sign-in with a password stores a basic proof', async () => {
    const tokens = await grant(tenant);
    const { auth_time, ...proofs } = await familyOf(tokens);
    expect(proofs).toEqual({ basic_proof_at: auth_time, strong_proof_at: null });
    expect(decodeJwt(tokens.access_token)).toMatchObject({ amr: ['pwd'], acr: 'basic' });
  });

  it.each([[['fed']], [['fed', 'mfa']], [['pwd', 'otp', 'mfa']], [['hwk', 'user', 'mfa']]])(
    'methods alone do not make the session strong: %j',
    async (amr) => {
      const tokens = await grant(tenant);
      await stamp(tokens, amr, null);
      expect(decodeJwt((await refreshed(tokens)).access_token)).toMatchObject({ amr, acr: 'basic' });
    },
  );

  it('a stored strong proof does, over refreshes and in another organisation', async () => {
    const tokens = await grant(tenant);
    const strongAt = new Date(tenant.clock.nowMs() - 1_000);
    await stamp(tokens, ['fed'], strongAt);
    const next = await refreshed(await refreshed(tokens));
    expect(decodeJwt(next.access_token)).toMatchObject({ amr: ['fed'], acr: 'strong' });
    const made = await tenant.app.inject({
      method: 'POST',
      url: '/api/organizations',
      headers: bearer(next.access_token),
      payload: { name: 'Strong', subdomain: 'strong' },
    });
    const switched = await tenant.app.inject({
      method: 'POST',
      url: '/api/auth/switch-org',
      headers: bearer(next.access_token),
      payload: { organizationId: made.json().id },
    });
    const there = switched.json<TokenBody>();
    expect(decodeJwt(there.access_token)).toMatchObject({ amr: ['fed'], acr: 'strong' });
    const before = await familyOf(tokens);
    expect(await familyOf(there)).toEqual(before);
    expect(before.strong_proof_at).toEqual(strongAt);
  });
});

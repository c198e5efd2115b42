import { randomBytes, randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { createWallet, signIn as signInAdministrator, type Tokens } from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';
import { verifyAccessToken } from '../harness/token.ts';
import { until } from '../harness/wait.ts';

const here = installation();

describe('the wallet in a token', () => {
  const username = `${randomUUID()}@example.org`;
  const password = randomBytes(18).toString('base64url');
  let organizationId = '';

  const claimsOf = async (token: string) =>
    (await verifyAccessToken(here.api, token, here.state.installation)).claims;
  const signIn = async () => {
    const form = { grant_type: 'password', username, password };
    return (await here.api.expect(200, 'POST', '/api/service-auth/token', { form })).body as Tokens;
  };
  const refresh = async (refreshToken: string) => {
    const json = { refreshToken };
    return (await here.api.expect(200, 'POST', '/api/auth/token/refresh', { json })).body as Tokens;
  };
  /** Refreshes until the token names a wallet; the wallet service's event takes a moment. */
  const refreshedClaim = (tokens: Tokens) => {
    let last = tokens;
    return until('a refreshed token names a wallet', 10_000, async () => {
      last = await refresh(last.refresh_token);
      const found = (await claimsOf(last.access_token))['wallet_address'];
      return found === undefined ? undefined : { address: found, token: last.access_token };
    });
  };

  beforeAll(async () => {
    organizationId = String((await claimsOf(here.token()))['org_id']);
    const person = { email: username, displayName: 'A person', password, roles: ['User'] };
    const path = `/api/organizations/${organizationId}/users`;
    await here.api.expect(201, 'POST', path, { token: here.token(), json: person });
  });

  test('a first wallet is named by the next refresh and the next sign-in, a second one changes nothing', async () => {
    const tokens = await signIn();
    expect(await claimsOf(tokens.access_token)).not.toHaveProperty('wallet_address');
    const oldest = await createWallet(here.api, tokens.access_token, 'ED25519');
    const refreshed = await refreshedClaim(tokens);
    expect(refreshed.address).toBe(oldest.walletAddress);
    const me = await here.api.expect(200, 'GET', '/api/auth/me', { token: refreshed.token });
    expect(me.body).toMatchObject({ walletAddress: oldest.walletAddress });
    const again = await signIn();
    expect((await claimsOf(again.access_token))['wallet_address']).toBe(oldest.walletAddress);
    const second = await createWallet(here.api, again.access_token, 'NISTP256');
    expect(second.walletAddress).not.toBe(oldest.walletAddress);
    const later = await refreshedClaim(again);
    expect(later.address).toBe(oldest.walletAddress);
  });

  test("the organisation’s wallet is no person's: the administrator’s own one is named", async () => {
    const json = { title: 'Of the organisation', keyType: 'ED25519', organizationId };
    await here.api.expect(201, 'POST', '/api/wallets', { token: here.token(), json });
    const own = await createWallet(here.api, here.token(), 'ED25519');
    const tokens = await signInAdministrator(here.api, here.state);
    expect((await refreshedClaim(tokens)).address).toBe(own.walletAddress);
  });

  test('a token of the consumer tier names none', async () => {
    const json = { email: username, password, tier: 'consumer' };
    const { body } = await here.api.expect(200, 'POST', '/api/auth/login', { json });
    const { access_token: token } = body as Tokens;
    const me = await here.api.expect(200, 'GET', '/api/auth/me', { token });
    expect(me.body).toMatchObject({ tier: 'consumer' });
    expect(me.body).not.toHaveProperty('walletAddress');
    expect(Object.keys(decodeJwt(token))).not.toContain('wallet_address');
  });
});

import { describe, expect, test } from 'vitest';
import { createOrganization, createPerson } from '../harness/governance.ts';
import { signIn } from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';
import { verifyAccessToken } from '../harness/token.ts';

const here = installation();

const chosenByAttacker = 'granite harbour lantern nine';
const chosenByBeta = 'violet meadow engine forty';

describe('accounts of one address in several organisations', () => {
  test('an earlier account with an address gets no access to the organisation that adds it', async () => {
    const { access_token: root } = await signIn(here.api, here.state);
    const administered = async (name: string) => {
      const organization = await createOrganization(here.api, root, name);
      const boss = await createPerson(here.api, root, organization, { name: 'boss', role: 'Administrator' });
      return { ...organization, boss: boss.token };
    };
    const attack = await administered('attack');
    const beta = await administered('beta');
    const email = `ceo@${beta.subdomain}.test`;
    const usersOf = ({ id }: { readonly id: string }) => `/api/organizations/${id}/users`;
    const add = async (to: typeof beta, password: string) => {
      const json = { email, displayName: 'Chief', password, roles: ['Administrator'] };
      const { body } = await here.api.expect(201, 'POST', usersOf(to), { token: to.boss, json });
      const { id, createdAt, ...rest } = body as Record<string, unknown>;
      return rest;
    };
    const login = (password: string, organizationSubdomain?: string) =>
      here.api.send('POST', '/api/auth/login', { json: { email, password, organizationSubdomain } });

    const made = await add(attack, chosenByAttacker);
    const before = await login(chosenByAttacker);
    expect(before.status).toBe(200);
    expect(await add(beta, chosenByBeta)).toEqual(made);

    const there = await login(chosenByAttacker, beta.subdomain);
    const anywhere = await login(chosenByAttacker);
    for (const refused of [there, anywhere]) {
      expect([refused.status, refused.body]).toMatchObject([401, { code: 'INVALID_CREDENTIALS' }]);
    }
    const within = await login(chosenByAttacker, attack.subdomain);
    expect(within.status).toBe(200);
    for (const { body } of [before, within]) {
      const { access_token: token, refresh_token: refreshToken } = body as Record<string, string>;
      const json = { organizationId: beta.id };
      const switched = await here.api.send('POST', '/api/auth/switch-org', { token, json });
      expect([switched.status, switched.body]).toMatchObject([403, { code: 'NOT_A_MEMBER' }]);
      expect((await here.api.send('GET', usersOf(beta), { token })).status).toBe(403);
      expect((await here.api.send('GET', `/api/organizations/${beta.id}`, { token })).status).toBe(404);
      const { body: open } = await here.api.expect(200, 'GET', '/api/auth/me/organizations', { token });
      expect(open).toMatchObject({ items: [{ organizationId: attack.id }] });
      const renewed = await here.api.expect(200, 'POST', '/api/auth/token/refresh', {
        json: { refreshToken },
      });
      const { access_token } = renewed.body as Record<string, string>;
      const { claims } = await verifyAccessToken(here.api, access_token ?? '', here.state.installation);
      expect(claims).toMatchObject({ org_id: attack.id });
    }

    const right = await login(chosenByBeta, beta.subdomain);
    expect(right.status).toBe(200);
    const { access_token: chief } = right.body as Record<string, string>;
    const { body: users } = await here.api.expect(200, 'GET', usersOf(beta), { token: chief });
    expect(users).toMatchObject({
      items: expect.arrayContaining([expect.objectContaining({ email, emailVerified: false })]),
    });
  });
});

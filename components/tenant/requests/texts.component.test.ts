import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer, grant, startTestTenant, type TestTenant } from '../tenant.fixture.ts';

const unreadable = [
  '\u202e',
  '\u2069',
  '\u00ad',
  '\u200b',
  '\ufeff',
  '\u0007',
  '\r',
  '\n',
  '\ud800',
  '\u{e0041}',
];

describe('human-readable texts of organisations and users', () => {
  let tenant: TestTenant;
  let admin: string;
  let acme: string;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_texts');
    admin = (await grant(tenant)).access_token;
    acme = (await post('/api/organizations', { name: 'Acme', subdomain: 'acme' })).json().id;
  });
  afterAll(() => tenant.stop());

  const post = (url: string, payload: object) =>
    tenant.app.inject({ method: 'POST', url, payload, headers: bearer(admin) });
  const organization = (name: string, subdomain: string, branding: object = {}) =>
    post('/api/organizations', { name, subdomain, branding });
  const user = (displayName: string, email = 'one@acme.example') =>
    post(`/api/organizations/${acme}/users`, {
      email,
      displayName,
      password: 'marble orchard seldom rains',
      roles: ['User'],
    });

  it.each(unreadable)('the character %j is refused', async (character) => {
    const text = `Ac${character}me`;
    const answers = [
      await organization(text, 'spoofed'),
      await organization('Spoofed', 'spoofed', { companyTagline: text }),
      await user(text),
    ];
    expect(answers.map((answer) => answer.statusCode)).toEqual([400, 400, 400]);
  });

  it('a refusal names the member', async () => {
    const answer = await user('Adm\u202ein');
    expect(answer.json()).toMatchObject({
      code: 'INVALID_REQUEST',
      errors: { displayName: [expect.stringContaining('invisible format characters')] },
    });
  });

  it('a name is visible, and may contain the joiners that scripts and emoji need', async () => {
    for (const text of [' ', '\u200d\u200d\u200d', '\u3164\u3164\u3164']) {
      expect([(await organization(text, 'blank')).statusCode, (await user(text)).statusCode]).toEqual([
        400, 400,
      ]);
    }
    const name = 'می\u200cخواهم 👩\u200d👧';
    const created = await organization(name, 'joined');
    expect([created.statusCode, created.json().name]).toEqual([201, name]);
    const added = await user(name, 'two@acme.example');
    expect([added.statusCode, added.json().displayName]).toEqual([201, name]);
  });
});

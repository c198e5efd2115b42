import { randomBytes, randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connectHub } from '../harness/hub.ts';
import { createIssuingOrganization, type IssuingOrganization } from '../harness/issuing-organization.ts';
import { createWallet, type Tokens } from '../harness/journey.ts';
import { type HeldCredential, Openid4vcWallet } from '../harness/openid4vc-wallet.ts';
import { Openid4vpWallet } from '../harness/openid4vp-wallet.ts';
import { installation } from '../harness/shared-system.ts';

const here = installation();
const asked = z.object({
  requestId: z.string(),
  authorizationRequestUri: z.string(),
  requestUri: z.string(),
});
const type = 'urn:platform:credential:site-permit';

describe('the app of a citizen', () => {
  const account = { email: `${randomUUID()}@example.org`, password: randomBytes(18).toString('base64url') };
  const app = new Openid4vcWallet();
  let organization: IssuingOrganization;
  let consumer = '';
  let base = '';
  let held: HeldCredential;
  let issuedId = '';

  beforeAll(async () => {
    organization = await createIssuingOrganization(here);
    await here.api.expect(201, 'POST', `/api/organizations/${decodeJwt(here.token())['org_id']}/users`, {
      token: here.token(),
      json: { ...account, displayName: 'A citizen', roles: ['User'] },
    });
    const signIn = async (json: object) => {
      const { body } = await here.api.expect(200, 'POST', '/api/auth/login', { json });
      return (body as Tokens).access_token;
    };
    const { walletAddress } = await createWallet(here.api, await signIn(account), 'NISTP256');
    consumer = await signIn({ ...account, tier: 'consumer' });
    base = `/api/v1/wallets/${walletAddress}/credentials`;
    const offer = await organization.offer();
    const [taken] = await app.take(offer.credentialOfferUri);
    if (taken === undefined) throw new Error('the wallet got no credential');
    held = taken;
    [issuedId = ''] = await organization.credentialIds(offer.offerId);
  });

  const get = async (path: string) =>
    (await here.api.expect(200, 'GET', `${base}${path}`, { token: consumer })).body;
  const store = (credential: string, status = 201) =>
    here.api.expect(status, 'POST', base, { token: consumer, json: { credential } });
  const resolve = (json: object, status = 200) =>
    here.api.expect(status, 'POST', '/api/v1/wallet/presentations/resolve-request', {
      token: consumer,
      json,
    });
  const ask = async (change: object = {}) => {
    const json = { credentialType: type, requiredClaims: ['permitNumber', 'area'], ...change };
    const token = organization.administrator.token;
    return asked.parse(
      (await here.api.expect(201, 'POST', '/api/v1/verifier/requests', { token, json })).body,
    );
  };

  test('keeps a credential, checks what a verifier asks, answers, and follows the status', async () => {
    const signals: unknown[] = [];
    const hub = await connectHub(`${here.state.gatewayUrl}/hubs/wallet`, {
      token: consumer,
      transport: 'WebSockets',
      targets: ['CredentialAvailable', 'CredentialStatusChanged'],
      onSignal: (target, [credentialId]) => signals.push([target, credentialId]),
    });
    const { body } = await store(held.compact);
    const stored = z.looseObject({ id: z.string() }).parse(body);
    expect(stored).toMatchObject({
      type,
      issuerTrusted: true,
      status: 'Active',
      keyBinding: 'OtherKey',
      claims: { permitNumber: 'P-17', area: 620, validFor: 'Test town' },
    });
    await store(held.compact, 200);
    const request = await ask();
    const resolved = await resolve({ requestUri: request.authorizationRequestUri });
    expect(resolved.body).toMatchObject({
      verifierHost: 'localhost',
      verifierAuthState: 'AuthenticUntrusted',
      satisfiable: true,
      matches: [
        {
          queryId: 'credential',
          candidates: [{ credentialId: stored.id, disclosableClaims: ['permitNumber', 'area'] }],
        },
      ],
    });
    const presenter = new Openid4vpWallet();
    const opened = await presenter.open(request.authorizationRequestUri);
    const names = ['permitNumber', 'area'];
    expect(await presenter.answer(opened, 'credential', held, names)).toMatchObject({ status: 200 });
    await resolve({ requestUri: request.requestUri }, 422);
    expect(await get(`/${stored.id}/export`)).toMatchObject({ credential: held.compact });

    await organization.change(issuedId, 'revoke');
    await expect
      .poll(() => get(`/${stored.id}`), { timeout: 30_000, interval: 1_000 })
      .toMatchObject({ status: 'Revoked' });
    await expect
      .poll(() => signals, { timeout: 10_000 })
      .toEqual([
        ['CredentialAvailable', stored.id],
        ['CredentialStatusChanged', stored.id],
      ]);
    await hub.stop();
    const again = await ask({ responseMode: 'direct_post.jwt', clientIdPrefix: 'x509_hash' });
    expect((await resolve({ requestUri: again.authorizationRequestUri })).body).toMatchObject({
      satisfiable: false,
      unsatisfiedQueryIds: ['credential'],
    });
    await here.api.expect(204, 'DELETE', `${base}/${stored.id}`, { token: consumer });
    expect(await get('')).toEqual({ credentials: [] });
  }, 60_000);

  test('is refused what was changed, and what others ask in a name that is not theirs', async () => {
    const [jws = '', ...rest] = held.compact.split('~');
    const [header, payload, signature] = jws.split('.');
    const changed = Buffer.from(
      JSON.stringify({ ...decodeJwt(jws), iss: 'https://elsewhere.example' }),
    ).toString('base64url');
    const refused = await store([`${header}.${changed}.${signature}`, ...rest].join('~'), 422);
    expect(refused.body).toMatchObject({
      code: 'CREDENTIAL_INVALID',
      detail: expect.stringMatching(/SIGNATURE/),
    });
    await store(`${jws}~${payload}~`, 422);
    const { authorizationRequestUri } = await ask();
    const uri = new URL(authorizationRequestUri);
    uri.searchParams.set('client_id', 'x509_san_dns:bank.example');
    const other = await resolve({ requestUri: uri.href }, 422);
    expect(other.body).toMatchObject({ code: 'REQUEST_OBJECT_INVALID' });
    // The door for addresses of others leads to none of this machine.
    for (const address of [
      'http://127.0.0.1:1/',
      'https://[::ffff:127.0.0.1]/',
      'https://169.254.169.254/latest',
    ])
      expect((await resolve({ requestUri: address }, 422)).body).toMatchObject({
        code: 'REQUEST_UNREACHABLE',
      });
  });
});

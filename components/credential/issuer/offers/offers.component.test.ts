import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { refusal } from '../../errors.ts';
import { PRE_AUTHORIZED_GRANT } from '../../protocol/grants.ts';
import { caller, type Fixture, issuerUrl, openFixture } from '../../testing/fixture.ts';
import { configurationOf, TestWallet, walletKey } from '../../testing/wallet.ts';
import { expiry } from '../../upkeep.ts';

let fixture: Fixture;
let wallet: TestWallet;

beforeAll(async () => {
  fixture = await openFixture('credential_offers');
  wallet = new TestWallet(fixture);
});

afterAll(() => fixture.close());
beforeEach(() => {
  delete fixture.outage.chain;
});

const service = { authorization: 'Bearer service' };
const stateOf = async (id: string) =>
  (await fixture.app.inject({ url: `/api/v1/offers/${id}`, headers: service })).json();
const refusalOf = (answer: { statusCode: number; json(): { error?: string; code?: string } }) => [
  answer.statusCode,
  answer.json().code ?? answer.json().error,
];

describe('an offer', () => {
  test('is a credential offer of OpenID4VCI, by value and by reference', async () => {
    const created = await wallet.offer({ txCode: { length: 6, description: 'From the letter' } });
    expect(created.statusCode).toBe(201);
    const offer = created.json();
    const expected = {
      credential_issuer: issuerUrl,
      credential_configuration_ids: ['urn-platform-credential-site-permit'],
      grants: {
        [PRE_AUTHORIZED_GRANT]: {
          'pre-authorized_code': offer.preAuthorizedCode,
          tx_code: { input_mode: 'numeric', length: 6, description: 'From the letter' },
        },
      },
    };
    expect(offer).toMatchObject({
      credentialOffer: expected,
      status: 'Pending',
      txCode: expect.stringMatching(/^\d{6}$/),
    });
    const byValue = new URL(offer.credentialOfferUri);
    expect(byValue.protocol).toBe('openid-credential-offer:');
    expect(JSON.parse(byValue.searchParams.get('credential_offer') ?? '')).toEqual(expected);
    const reference =
      new URL(offer.credentialOfferReferenceUri).searchParams.get('credential_offer_uri') ?? '';
    expect(reference.startsWith(`${issuerUrl}/`)).toBe(true);
    const path = reference.slice(issuerUrl.length);
    expect((await fixture.app.inject({ url: path })).json()).toEqual(expected);
    const form = { 'pre-authorized_code': offer.preAuthorizedCode, tx_code: offer.txCode };
    expect((await wallet.token(form)).statusCode).toBe(200);
    expect(refusalOf(await fixture.app.inject({ url: path }))).toEqual([410, 'OFFER_ENDED']);
    const unknown = `/api/v1/offers/${'A'.repeat(43)}/credential-offer`;
    expect(refusalOf(await fixture.app.inject({ url: unknown }))).toEqual([404, 'OFFER_NOT_FOUND']);
  });

  test('is for services', async () => {
    fixture.callers.set('Bearer person', caller({ roles: ['Administrator'] }));
    const answer = (authorization: string) =>
      fixture.app.inject({ method: 'POST', url: '/api/v1/offers', headers: { authorization }, payload: {} });
    expect((await answer('Bearer person')).statusCode).toBe(403);
    expect((await answer('Bearer unknown')).statusCode).toBe(401);
  });

  test.each([
    ['a claim of the issuer', { claims: { iss: 'x' } }, 400, 'CLAIMS_INVALID'],
    ['a claim named _sd', { claims: { a: [{ _sd: 1 }] } }, 400, 'CLAIMS_INVALID'],
    ['a path to nothing', { disclosablePaths: ['nothing'] }, 400, 'CLAIMS_INVALID'],
    ['a pointer to nothing', { disclosablePaths: ['/address/nothing'] }, 400, 'CLAIMS_INVALID'],
    ['a pointer into a prototype', { disclosablePaths: ['/address/constructor'] }, 400, 'CLAIMS_INVALID'],
    ['claims that are none', { claims: [] }, 400, 'INVALID_REQUEST'],
    ['large claims', { claims: { a: 'x'.repeat(70_000) } }, 400, 'CLAIMS_INVALID'],
    ['an mdoc without a document type', { format: 'mso_mdoc' }, 400, 'CLAIMS_INVALID'],
    [
      'an mdoc without namespaces',
      { format: 'mso_mdoc', doctype: 'd', claims: { a: 1 } },
      400,
      'CLAIMS_INVALID',
    ],
    [
      'an mdoc of the register',
      { format: 'mso_mdoc', doctype: 'd', claims: { n: { a: 1 } }, trustAnchor: 'register' },
      400,
      'CLAIMS_INVALID',
    ],
    ['another wallet', { issuerWalletAddress: 'w1other' }, 422, 'ISSUER_WALLET_MISMATCH'],
    ['a short life', { expiresInSeconds: 59 }, 400, 'INVALID_REQUEST'],
    ['a member that is not known', { pin: '1' }, 400, 'INVALID_REQUEST'],
  ])('with %s is refused', async (_, change, status, code) => {
    expect(refusalOf(await wallet.offer(change))).toEqual([status, code]);
  });

  test('is refused before it is made when its organisation has no certificate', async () => {
    fixture.outage.chain = refusal('CERT_NOT_ENROLLED');
    expect(refusalOf(await wallet.offer())).toEqual([422, 'CERT_NOT_ENROLLED']);
  });

  test('is cancelled until a wallet takes it', async () => {
    const offer = (await wallet.offer()).json();
    const cancel = (id: string) =>
      fixture.app.inject({ method: 'DELETE', url: `/api/v1/offers/${id}`, headers: service });
    expect((await cancel(offer.offerId)).statusCode).toBe(204);
    expect((await cancel(offer.offerId)).statusCode).toBe(204);
    expect(await stateOf(offer.offerId)).toMatchObject({ status: 'Expired', reason: 'cancelled' });
    expect((await wallet.token({ 'pre-authorized_code': offer.preAuthorizedCode })).json().error).toBe(
      'invalid_grant',
    );
    const taken = await wallet.accepted();
    expect(refusalOf(await cancel(taken.offer.offerId))).toEqual([409, 'OFFER_TAKEN']);
    expect(refusalOf(await cancel('0190a5b2-7c3d-4e4f-8a1b-2c3d4e5f6a7b'))).toEqual([404, 'OFFER_NOT_FOUND']);
  });

  test('that has expired is not cancelled', async () => {
    const { offerId } = (await wallet.offer({ expiresInSeconds: 60 })).json();
    fixture.clock.advance(60_000);
    const url = `/api/v1/offers/${offerId}`;
    expect((await fixture.app.inject({ method: 'DELETE', url, headers: service })).statusCode).toBe(204);
    expect(await stateOf(offerId)).not.toHaveProperty('reason');
  });

  test('leaves no code and no claim in the database that can be read', async () => {
    const secretive = { claims: { secretName: 'Ada Lovelace of Test' } };
    const offer = (await wallet.offer({ ...secretive, txCode: {} })).json();
    const { rows } = await fixture.db.pool.query('select to_jsonb(offers) as row from offers');
    const text = JSON.stringify(rows.map(({ row }) => row));
    for (const secret of [offer.preAuthorizedCode, offer.txCode, 'Lovelace']) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(Buffer.from(secret).toString('hex'));
    }
  });

  test('loses what is sealed in it when it expires', async () => {
    const offer = (await wallet.offer({ expiresInSeconds: 60 })).json();
    fixture.clock.advance(60_000);
    expect((await stateOf(offer.offerId)).status).toBe('Expired');
    expect((await wallet.token({ 'pre-authorized_code': offer.preAuthorizedCode })).json().error).toBe(
      'invalid_grant',
    );
    await expiry(fixture).run(new AbortController().signal);
    const row = await fixture.db.read
      .selectFrom('offers')
      .select(['sealed_claims', 'sealed_code', 'status'])
      .where('id', '=', offer.offerId)
      .executeTakeFirstOrThrow();
    expect(row).toEqual({ sealed_claims: null, sealed_code: null, status: 'Expired' });
  });
});

describe('the code of an offer', () => {
  test('serves one of fifty requests at one time, on two replicas', async () => {
    const other = new TestWallet(fixture, fixture.replica());
    const offer = (await wallet.offer()).json();
    const form = { 'pre-authorized_code': offer.preAuthorizedCode };
    const sent = Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? wallet : other).token(form));
    const answers = (await Promise.all(sent)).map((one) => one.json().error ?? 'given');
    expect(answers.filter((one) => one === 'given')).toHaveLength(1);
    expect(answers.filter((one) => one === 'invalid_grant')).toHaveLength(49);
  });

  test('gives a token and a nonce that are not cached', async () => {
    const offer = (await wallet.offer()).json();
    const answer = await wallet.token({ 'pre-authorized_code': offer.preAuthorizedCode });
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.json()).toEqual({
      access_token: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      token_type: 'Bearer',
      expires_in: 300,
      c_nonce: expect.any(String),
      c_nonce_expires_in: 300,
    });
  });

  test.each([
    ['another grant', { grant_type: 'authorization_code' }, 'unsupported_grant_type'],
    ['no code', {}, 'invalid_request'],
    ['an unknown code', { 'pre-authorized_code': 'x' }, 'invalid_grant'],
  ])('with %s is refused', async (_, form, error) => {
    const answer = await wallet.token(form);
    expect([answer.statusCode, answer.json().error]).toEqual([400, error]);
  });

  test('is a form with each parameter once', async () => {
    const send = (payload: string, type = 'application/x-www-form-urlencoded') =>
      fixture.app.inject({ method: 'POST', url: '/token', headers: { 'content-type': type }, payload });
    const grant = `grant_type=${encodeURIComponent(PRE_AUTHORIZED_GRANT)}`;
    for (const [payload, type] of [
      [`${grant}&pre-authorized_code=a&pre-authorized_code=b`],
      [`${grant}&pre-authorized_code=a%00`],
      ['{"grant_type":"x"}', 'application/json'],
    ]) {
      const answer = await send(payload ?? '', type);
      expect([answer.statusCode, answer.json().error]).toEqual([400, 'invalid_request']);
    }
    expect((await send('<a/>', 'text/xml')).statusCode).toBe(415);
    expect((await send(`${grant}&x=${'a'.repeat(20_000)}`)).statusCode).toBe(413);
  });

  test('needs the transaction code, and five wrong ones end the offer, also across replicas', async () => {
    const other = new TestWallet(fixture, fixture.replica());
    const offer = (await wallet.offer({ txCode: { inputMode: 'text', length: 8 } })).json();
    expect(offer.txCode).toMatch(/^[A-HJ-NP-Z2-9]{8}$/);
    const code = { 'pre-authorized_code': offer.preAuthorizedCode };
    expect((await wallet.token(code)).json().error).toBe('invalid_request');
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const by = attempt % 2 === 0 ? wallet : other;
      expect((await by.token({ ...code, tx_code: 'WRONG' })).json().error).toBe('invalid_grant');
    }
    expect((await stateOf(offer.offerId)).status).toBe('Pending');
    expect((await other.token({ ...code, tx_code: 'WRONG' })).json().error).toBe('invalid_grant');
    expect(await stateOf(offer.offerId)).toMatchObject({ status: 'Expired', reason: 'tx_code' });
    expect((await wallet.token({ ...code, tx_code: offer.txCode })).json().error).toBe('invalid_grant');
  });

  test('is refused with a transaction code that the offer has not', async () => {
    const offer = (await wallet.offer()).json();
    const form = { 'pre-authorized_code': offer.preAuthorizedCode, tx_code: '1' };
    expect((await wallet.token(form)).json().error).toBe('invalid_request');
  });
});

describe('the metadata', () => {
  test('lists what was offered, under one id for a type', async () => {
    await wallet.offer({ credentialType: 'Élan 1', claims: { a: 1 } });
    await wallet.offer({ credentialType: 'Élan 1', claims: { b: 1 } });
    await wallet.offer({ credentialType: 'x', vct: 'https://types.test/permit', claims: {} });
    await wallet.offer({ credentialType: 'https://types.test/permit!' });
    const answer = await fixture.app.inject({ url: '/.well-known/openid-credential-issuer' });
    const { credential_configurations_supported: all, ...rest } = answer.json();
    expect(rest).toMatchObject({
      credential_issuer: issuerUrl,
      credential_endpoint: `${issuerUrl}/credential`,
      nonce_endpoint: `${issuerUrl}/nonce`,
      batch_credential_issuance: { batch_size: 10 },
    });
    expect(all['https-types-test-permit'].vct).toBe('https://types.test/permit');
    expect(all['https-types-test-permit-2'].vct).toBe('https://types.test/permit!');
    const [id] = Object.keys(all).filter((one) => one.includes('lan-1'));
    expect(all[id ?? ''].credential_metadata).toEqual({
      display: [{ name: 'Élan 1', locale: 'en' }],
      claims: [{ path: ['b'] }],
    });
    expect(answer.headers['cache-control']).toBe('public, max-age=60');
  });

  test('names the elements of an mdoc with their namespaces', async () => {
    const claims = { 'org.test.1': { 'a/b~': 1, c: { d: 1 } }, 'org.test.2': { e: 1 } };
    const offer = { format: 'mso_mdoc', doctype: 'org.test.document', claims };
    const id = configurationOf((await wallet.offer(offer)).json());
    const answer = await fixture.app.inject({ url: '/.well-known/openid-credential-issuer' });
    expect(answer.json().credential_configurations_supported[id].credential_metadata.claims).toEqual([
      { path: ['org.test.1', 'a/b~'] },
      { path: ['org.test.1', 'c'] },
      { path: ['org.test.2', 'e'] },
    ]);
  });

  test('has two forms, which caches keep apart', async () => {
    for (const accept of ['application/json', 'application/jwt']) {
      const url = '/.well-known/openid-credential-issuer';
      const answer = await fixture.app.inject({ url, headers: { accept } });
      expect(answer.headers['content-type']).toContain(accept);
      expect(answer.headers['vary']).toContain('accept');
    }
  });

  test('lists the types that were offered last, where there are more than it lists', async () => {
    const listed = async () => {
      const answer = await fixture.app.inject({ url: '/.well-known/openid-credential-issuer' });
      return Object.keys(answer.json().credential_configurations_supported);
    };
    const seldom = configurationOf((await wallet.offer({ credentialType: 'Seldom' })).json());
    expect(await listed()).toContain(seldom);
    fixture.clock.advance(7_200_000);
    const now = new Date(fixture.clock.nowMs());
    const others = Array.from({ length: 1_000 }, (_, index) => ({
      id: `other-${index}`,
      format: 'dc+sd-jwt' as const,
      credential_type: `urn:other:${index}`,
      display_name: 'Other',
      claims: '[]',
      created_at: now,
      offered_at: now,
    }));
    await fixture.db.transact((tx) => tx.insertInto('configurations').values(others).execute());
    expect(await listed()).not.toContain(seldom);
    fixture.clock.advance(1);
    expect((await wallet.offer({ credentialType: 'Seldom' })).statusCode).toBe(201);
    expect(await listed()).toContain(seldom);
    expect(await listed()).toHaveLength(1_000);
    await fixture.db.transact((tx) =>
      tx.deleteFrom('configurations').where('id', 'like', 'other-%').execute(),
    );
  });

  test('is the same id for offers at one time', async () => {
    const offers = await Promise.all(
      Array.from({ length: 8 }, () => wallet.offer({ credentialType: 'At one time' })),
    );
    expect(offers.map(({ statusCode }) => statusCode)).toEqual(Array.from({ length: 8 }, () => 201));
    const ids = offers.map((one) => one.json().credentialOffer.credential_configuration_ids[0]);
    expect(new Set(ids).size).toBe(1);
  });

  test('of the token endpoint names the grant', async () => {
    const answer = await fixture.app.inject({ url: '/.well-known/oauth-authorization-server' });
    expect(answer.json()).toMatchObject({
      issuer: issuerUrl,
      token_endpoint: `${issuerUrl}/token`,
      grant_types_supported: [PRE_AUTHORIZED_GRANT],
      'pre-authorized_grant_anonymous_access_supported': true,
    });
  });
});

test('all that has expired is deleted in one run, however much it is', async () => {
  const expires_at = new Date(fixture.clock.nowMs() - 1);
  const values = Array.from({ length: 2_500 }, () => ({ value_hash: randomBytes(32), expires_at }));
  await fixture.db.transact((tx) => tx.insertInto('used_values').values(values).execute());
  await expiry(fixture).run(new AbortController().signal);
  const left = await fixture.db.read
    .selectFrom('used_values')
    .selectAll()
    .where('expires_at', '<=', expires_at)
    .execute();
  expect(left).toEqual([]);
});

test('an expired token and used nonces are deleted, and a used nonce is not accepted afterwards', async () => {
  const { accessToken, configurationId } = await wallet.accepted();
  const proof = await wallet.proof(await walletKey());
  const body = { credential_configuration_id: configurationId, proofs: { jwt: [proof] } };
  expect((await wallet.credential(accessToken, body)).statusCode).toBe(200);
  fixture.clock.advance(700_000);
  await expiry(fixture).run(new AbortController().signal);
  for (const table of ['access_tokens', 'used_values'] as const) {
    const rows = await fixture.db.read.selectFrom(table).selectAll().execute();
    expect(rows.every(({ expires_at: at }) => at.getTime() >= fixture.clock.nowMs())).toBe(true);
  }
  const later = await wallet.accepted();
  expect((await wallet.credential(later.accessToken, body)).json().error).toBe('invalid_proof');
});

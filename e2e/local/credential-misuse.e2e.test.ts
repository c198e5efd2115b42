import { randomBytes } from 'node:crypto';
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Answer } from '../harness/api.ts';
import { createIssuingOrganization, type IssuingOrganization } from '../harness/issuing-organization.ts';
import { type HeldCredential, Openid4vcWallet } from '../harness/openid4vc-wallet.ts';
import { present } from '../harness/openid4vp-wallet.ts';
import { installation } from '../harness/shared-system.ts';

const here = installation();
const grantType = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';
const taken = z.object({ access_token: z.string() });
const given = z.object({ c_nonce: z.string() });
const offered = z.object({
  credential_issuer: z.string(),
  credential_configuration_ids: z.tuple([z.string()]),
  grants: z.object({ [grantType]: z.object({ 'pre-authorized_code': z.string() }) }),
});
const asked = z.object({ requestId: z.string(), requestUri: z.string() });
const objectOf = z.object({ client_id: z.string(), nonce: z.string(), state: z.string() });
const verdict = z.object({
  state: z.string(),
  result: z
    .object({ errors: z.array(z.object({ code: z.string() })), verifiedClaims: z.object().loose() })
    .nullable(),
});

let organization: IssuingOrganization;

beforeAll(async () => {
  organization = await createIssuingOrganization(here);
});

/** Status and code of a refusal, in the shape of OAuth. */
const oauthError = ({ status, body }: Answer) => [status, (body as { error?: string }).error];

/** An offer as its link says it. */
const read = (link: string) => {
  const {
    grants,
    credential_issuer: issuer,
    credential_configuration_ids: ids,
  } = offered.parse(JSON.parse(new URL(link).searchParams.get('credential_offer') ?? ''));
  return { code: grants[grantType]['pre-authorized_code'], configurationId: ids[0], issuer };
};

describe('a wallet that misuses an offer', () => {
  const redeem = (code: string, more: Readonly<Record<string, string>> = {}) =>
    here.api.send('POST', '/token', {
      form: { grant_type: grantType, 'pre-authorized_code': code, ...more },
    });
  const nonce = async () => given.parse((await here.api.expect(200, 'POST', '/nonce')).body).c_nonce;
  const accepted = async () => {
    const offer = await organization.offer();
    const { code, configurationId, issuer } = read(offer.credentialOfferUri);
    const { access_token: token } = taken.parse((await redeem(code)).body);
    return { offerId: offer.offerId, configurationId, issuer, token };
  };
  const proof = async (aud: string, payload: JWTPayload = {}) => {
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    const jwk = await exportJWK(publicKey);
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT({ aud, iat: now, nonce: await nonce(), ...payload })
      .setProtectedHeader({ typ: 'openid4vci-proof+jwt', alg: 'ES256', jwk })
      .sign(privateKey);
  };
  const credential = (token: string, configurationId: string, jwt: readonly string[]) =>
    here.api.send('POST', '/credential', {
      ...(token !== '' && { token }),
      json: { credential_configuration_id: configurationId, proofs: { jwt } },
    });

  test('with one code from twenty devices at once is served once', async () => {
    const { code } = read((await organization.offer()).credentialOfferUri);
    const answers = await Promise.all(Array.from({ length: 20 }, () => redeem(code)));
    const refused = answers.filter(({ status }) => status !== 200).map(oauthError);
    expect(refused).toEqual(Array.from({ length: 19 }, () => [400, 'invalid_grant']));
  });

  test('by guessing its transaction code ends it', async () => {
    const offer = await organization.offer({ txCode: { length: 6 } });
    const { code } = read(offer.credentialOfferUri);
    const right = offer.txCode ?? '';
    const wrong = right === '000000' ? '000001' : '000000';
    expect(oauthError(await redeem(code))).toEqual([400, 'invalid_request']);
    for (let tries = 0; tries < 5; tries += 1)
      expect(oauthError(await redeem(code, { tx_code: wrong }))).toEqual([400, 'invalid_grant']);
    expect(oauthError(await redeem(code, { tx_code: right }))).toEqual([400, 'invalid_grant']);
    expect(await organization.stateOf(offer.offerId)).toMatchObject({ status: 'Expired', reason: 'tx_code' });
  });

  test('that was cancelled, or with a code that was never given, gets nothing', async () => {
    const offer = await organization.offer();
    await here.api.expect(204, 'DELETE', `/api/v1/offers/${offer.offerId}`, { token: organization.service });
    for (const code of [read(offer.credentialOfferUri).code, randomBytes(32).toString('base64url')])
      expect(oauthError(await redeem(code))).toEqual([400, 'invalid_grant']);
  });

  test('without a token, with that of another offer, or with a proof for another issuer gets nothing', async () => {
    const { offerId, configurationId, issuer, token } = await accepted();
    const fair = await proof(issuer);
    const anonymous = await credential('', configurationId, [fair]);
    expect(oauthError(anonymous)).toEqual([401, 'invalid_token']);
    expect(anonymous.headers.get('www-authenticate')).toContain('Bearer');
    const other = read((await organization.offer({ credentialType: 'Other' })).credentialOfferUri);
    expect(oauthError(await credential(token, other.configurationId, [fair]))).toEqual([
      400,
      'invalid_credential_request',
    ]);
    for (const jwt of [
      [await proof('https://other.example')],
      [await proof(issuer, { nonce: undefined })],
      [await proof(issuer, { iat: 1 })],
      Array.from({ length: 11 }, () => fair),
      [`${fair.slice(0, -6)}AAAAAA`],
      [],
    ])
      expect(oauthError(await credential(token, configurationId, jwt))).toEqual([400, 'invalid_proof']);
    expect(await organization.credentialIds(offerId)).toEqual([]);
    expect((await credential(token, configurationId, [fair])).status).toBe(200);
  });

  test('by using a nonce twice gets one credential', async () => {
    const [first, second] = [await accepted(), await accepted()];
    const used = await nonce();
    const send = async ({ token, configurationId, issuer }: typeof first) =>
      credential(token, configurationId, [await proof(issuer, { nonce: used })]);
    const answers = await Promise.all([first, second].map(send));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
    expect(oauthError(await send(second))).toEqual([400, 'invalid_nonce']);
    const issued = [first, second].map(({ offerId }) => organization.credentialIds(offerId));
    expect((await Promise.all(issued)).flat()).toHaveLength(1);
  });
});

describe('a wallet that misuses a request for presentations', () => {
  const wallet = new Openid4vcWallet();
  const type = 'urn:platform:credential:site-permit';
  let held: HeldCredential;

  beforeAll(async () => {
    const [one] = await wallet.take((await organization.offer()).credentialOfferUri);
    if (one === undefined) throw new Error('the wallet got no credential');
    held = one;
  });

  const call = () => ({ token: organization.administrator.token });
  const ask = async (json: object = { credentialType: type, requiredClaims: ['permitNumber'] }) => {
    const created = await here.api.expect(201, 'POST', '/api/v1/verifier/requests', { ...call(), json });
    const { requestId, requestUri } = asked.parse(created.body);
    const object = await here.api.expect(200, 'GET', new URL(requestUri).pathname);
    return { requestId, request: objectOf.parse(decodeJwt(String(object.body))) };
  };
  type Ask = Awaited<ReturnType<typeof ask>>;
  const post = ({ requestId }: Ask, form: Readonly<Record<string, string>>) =>
    here.api.send('POST', `/api/v1/verifier/requests/${requestId}/direct-post`, { form });
  const answer = (to: Ask, presentation: string, { id = 'credential', state = to.request.state } = {}) =>
    post(to, { vp_token: JSON.stringify({ [id]: [presentation] }), state });
  const resultOf = async ({ requestId }: Ask) => {
    const path = `/api/v1/verifier/requests/${requestId}/result`;
    return verdict.parse((await here.api.expect(200, 'GET', path, call())).body);
  };
  const codeOf = ({ status, body }: Answer) => [status, (body as { code?: string }).code];

  test('is refused in what it sends, and may still answer', async () => {
    const [one, other] = [await ask(), await ask()];
    const fair = await present(one.request, held, ['permitNumber']);
    for (const [what, sent, refused] of [
      ['state of another', answer(one, fair, { state: other.request.state }), [400, 'STATE_MISMATCH']],
      ['unknown query', answer(one, fair, { id: 'other' }), [400, 'DCQL_UNKNOWN_QUERY_ID']],
      ['bare text', post(one, { vp_token: fair, state: one.request.state }), [400, 'LEGACY_DIALECT']],
      ['encrypted', post(one, { response: 'a.b.c.d.e' }), [400, 'RESPONSE_MODE_MISMATCH']],
      ['too long', answer(one, 'x'.repeat(1_048_577)), [413, undefined]],
    ] as const)
      expect([what, codeOf(await sent)]).toEqual([what, refused]);
    expect((await resultOf(one)).state).toBe('Pending');
    expect((await answer(one, fair)).status).toBe(200);
    expect((await resultOf(one)).state).toBe('Verified');
    expect(codeOf(await answer(one, fair))).toEqual([409, 'ALREADY_SUBMITTED']);
    const foreign = `/api/v1/verifier/requests/${one.requestId}/result`;
    await here.api.expect(404, 'GET', foreign, { token: here.token() });
  });

  test('is answered alike and judged Failed, for each fault of a presentation', async () => {
    const earlier = await ask();
    const replayed = await present(earlier.request, held, ['permitNumber']);
    const [jws = '', ...rest] = held.compact.split('~');
    const at = jws.lastIndexOf('.') + 10;
    const forged = `${jws.slice(0, at)}${jws[at] === 'A' ? 'B' : 'A'}${jws.slice(at + 1)}`;
    const [, disclosure = ''] = held.compact.split('~');
    const raised = Buffer.from(disclosure, 'base64url')
      .toString()
      .replace(/(?<=")[^"]+(?="\]$)|\d+(?=\]$)/, '9');
    const changed = [jws, Buffer.from(raised).toString('base64url'), ...rest.slice(1)].join('~');
    const names = ['permitNumber', 'area', 'validFor'];
    for (const [code, presentation] of [
      ['KB_NONCE', async () => replayed],
      ['KB_AUD', (to: Ask) => present({ ...to.request, client_id: 'x509_san_dns:other' }, held, names)],
      ['KB_MISSING', async () => held.compact],
      ['CLAIM_MISSING', (to: Ask) => present(to.request, held, [])],
      [
        'SIGNATURE',
        (to: Ask) => present(to.request, { ...held, compact: [forged, ...rest].join('~') }, names),
      ],
      ['DIGEST', (to: Ask) => present(to.request, { ...held, compact: changed }, names)],
    ] as const) {
      const to = await ask();
      expect(await answer(to, await presentation(to)), code).toMatchObject({ status: 200, body: {} });
      expect(await resultOf(to), code).toMatchObject({
        state: 'Failed',
        result: { errors: [{ code }], verifiedClaims: {} },
      });
    }
  });

  test('that accepts alternatives answers one of them', async () => {
    const query = (id: string, vct: string) => ({
      id,
      format: 'dc+sd-jwt',
      meta: { vct_values: [vct] },
      claims: [{ path: ['permitNumber'] }],
    });
    const declaredQuery = {
      credentials: [query('licence', 'urn:x:licence'), query('permit', type)],
      credential_sets: [{ options: [['licence'], ['permit']] }],
    };
    const to = await ask({ declaredQuery });
    const presentation = await present(to.request, held, ['permitNumber']);
    expect((await answer(to, presentation, { id: 'permit' })).status).toBe(200);
    expect((await resultOf(to)).state).toBe('Verified');
    const wrong = await ask({ declaredQuery });
    await answer(wrong, await present(wrong.request, held, ['permitNumber']), { id: 'licence' });
    expect(await resultOf(wrong)).toMatchObject({ state: 'Failed' });
  });
});

import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../harness/api.ts';
import { createIssuingOrganization, type IssuingOrganization } from '../harness/issuing-organization.ts';
import { type HeldCredential, Openid4vcWallet } from '../harness/openid4vc-wallet.ts';
import { present } from '../harness/openid4vp-wallet.ts';
import { type PresentationRequest, presentationRequests } from '../harness/presentation-requests.ts';
import { createRawWallet, readOffer } from '../harness/raw-wallet.ts';
import { installation } from '../harness/shared-system.ts';

const here = installation();
let organization: IssuingOrganization;

beforeAll(async () => {
  organization = await createIssuingOrganization(here);
});

/** Status and code of a refusal, in the shape of OAuth. */
const oauthError = ({ status, body }: Answer) => [status, (body as { error?: string }).error];

describe('a wallet that misuses an offer', () => {
  const wallet = createRawWallet(() => here.api);

  test('with one code from twenty devices at once is served once', async () => {
    const { code } = readOffer((await organization.offer()).credentialOfferUri);
    const answers = await Promise.all(Array.from({ length: 20 }, () => wallet.redeem(code)));
    const refused = answers.filter(({ status }) => status !== 200).map(oauthError);
    expect(refused).toEqual(Array.from({ length: 19 }, () => [400, 'invalid_grant']));
  });

  test('by guessing its transaction code ends it', async () => {
    const offer = await organization.offer({ txCode: { length: 6 } });
    const { code } = readOffer(offer.credentialOfferUri);
    const right = offer.txCode ?? '';
    const wrong = right === '000000' ? '000001' : '000000';
    expect(oauthError(await wallet.redeem(code))).toEqual([400, 'invalid_request']);
    for (let tries = 0; tries < 5; tries += 1)
      expect(oauthError(await wallet.redeem(code, { tx_code: wrong }))).toEqual([400, 'invalid_grant']);
    expect(oauthError(await wallet.redeem(code, { tx_code: right }))).toEqual([400, 'invalid_grant']);
    expect(await organization.stateOf(offer.offerId)).toMatchObject({ status: 'Expired', reason: 'tx_code' });
  });

  test('that was cancelled, or with a code that was never given, gets nothing', async () => {
    const offer = await organization.offer();
    await here.api.expect(204, 'DELETE', `/api/v1/offers/${offer.offerId}`, { token: organization.service });
    for (const code of [readOffer(offer.credentialOfferUri).code, randomBytes(32).toString('base64url')])
      expect(oauthError(await wallet.redeem(code))).toEqual([400, 'invalid_grant']);
  });

  test('without a token, with that of another offer, or with a proof for another issuer gets nothing', async () => {
    const offer = await wallet.accept(organization);
    const fair = await wallet.proof(offer.issuer);
    const anonymous = await wallet.credential({ ...offer, token: '' }, [fair]);
    expect(oauthError(anonymous)).toEqual([401, 'invalid_token']);
    expect(anonymous.headers.get('www-authenticate')).toContain('Bearer');
    const { configurationId } = readOffer(
      (await organization.offer({ credentialType: 'Other' })).credentialOfferUri,
    );
    expect(oauthError(await wallet.credential({ ...offer, configurationId }, [fair]))).toEqual([
      400,
      'invalid_credential_request',
    ]);
    for (const jwt of [
      [await wallet.proof('https://other.example')],
      [await wallet.proof(offer.issuer, { nonce: undefined })],
      [await wallet.proof(offer.issuer, { iat: 1 })],
      Array.from({ length: 11 }, () => fair),
      [`${fair.slice(0, -6)}AAAAAA`],
      [],
    ])
      expect(oauthError(await wallet.credential(offer, jwt))).toEqual([400, 'invalid_proof']);
    expect(await organization.credentialIds(offer.offerId)).toEqual([]);
    expect((await wallet.credential(offer, [fair])).status).toBe(200);
  });

  test('by using a nonce twice gets one credential', async () => {
    const [first, second] = [await wallet.accept(organization), await wallet.accept(organization)];
    const used = await wallet.nonce();
    const send = async (offer: typeof first) =>
      wallet.credential(offer, [await wallet.proof(offer.issuer, { nonce: used })]);
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

  const requests = presentationRequests(() => ({
    api: here.api,
    token: organization.administrator.token,
  }));
  const codeOf = ({ status, body }: Answer) => [status, (body as { code?: string }).code];

  test('is refused in what it sends, and may still answer', async () => {
    const [one, other] = [await requests.ask(), await requests.ask()];
    const fair = await present(one.request, held, ['permitNumber']);
    for (const [what, sent, refused] of [
      [
        'state of another',
        requests.answer(one, fair, { state: other.request.state }),
        [400, 'STATE_MISMATCH'],
      ],
      ['unknown query', requests.answer(one, fair, { id: 'other' }), [400, 'DCQL_UNKNOWN_QUERY_ID']],
      [
        'bare text',
        requests.post(one, { vp_token: fair, state: one.request.state }),
        [400, 'LEGACY_DIALECT'],
      ],
      ['encrypted', requests.post(one, { response: 'a.b.c.d.e' }), [400, 'RESPONSE_MODE_MISMATCH']],
      ['too long', requests.answer(one, 'x'.repeat(1_048_577)), [413, undefined]],
    ] as const)
      expect([what, codeOf(await sent)]).toEqual([what, refused]);
    expect((await requests.resultOf(one)).state).toBe('Pending');
    expect((await requests.answer(one, fair)).status).toBe(200);
    expect((await requests.resultOf(one)).state).toBe('Verified');
    expect(codeOf(await requests.answer(one, fair))).toEqual([409, 'ALREADY_SUBMITTED']);
    const foreign = `/api/v1/verifier/requests/${one.requestId}/result`;
    await here.api.expect(404, 'GET', foreign, { token: here.token() });
  });

  test('is answered alike and judged Failed, for each fault of a presentation', async () => {
    const earlier = await requests.ask();
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
      [
        'KB_AUD',
        (to: PresentationRequest) => present({ ...to.request, client_id: 'x509_san_dns:other' }, held, names),
      ],
      ['KB_MISSING', async () => held.compact],
      ['CLAIM_MISSING', (to: PresentationRequest) => present(to.request, held, [])],
      [
        'SIGNATURE',
        (to: PresentationRequest) =>
          present(to.request, { ...held, compact: [forged, ...rest].join('~') }, names),
      ],
      ['DIGEST', (to: PresentationRequest) => present(to.request, { ...held, compact: changed }, names)],
    ] as const) {
      const to = await requests.ask();
      expect(await requests.answer(to, await presentation(to)), code).toMatchObject({
        status: 200,
        body: {},
      });
      expect(await requests.resultOf(to), code).toMatchObject({
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
    const to = await requests.ask({ declaredQuery });
    const presentation = await present(to.request, held, ['permitNumber']);
    expect((await requests.answer(to, presentation, { id: 'permit' })).status).toBe(200);
    expect((await requests.resultOf(to)).state).toBe('Verified');
    const wrong = await requests.ask({ declaredQuery });
    await requests.answer(wrong, await present(wrong.request, held, ['permitNumber']), { id: 'licence' });
    expect(await requests.resultOf(wrong)).toMatchObject({ state: 'Failed' });
  });
});

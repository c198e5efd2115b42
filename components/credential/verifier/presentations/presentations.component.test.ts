import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { refusal } from '../../errors.ts';
import { caller, type Fixture, issuerUrl, openFixture } from '../../testing/fixture.ts';
import { type Held, Presenter } from '../../testing/presenter.ts';
import { expiry } from '../../upkeep.ts';

let fixture: Fixture;
let presenter: Presenter;
let held: Held;

beforeAll(async () => {
  fixture = await openFixture('credential_presentations');
  presenter = new Presenter(fixture);
  held = await presenter.hold();
});

afterAll(() => fixture.close());
beforeEach(() => {
  delete fixture.outage.anchor;
});

const codes = ({ result }: { result: { errors: { code: string }[] } }) =>
  result.errors.map(({ code }) => code);

describe('an answer', () => {
  test.each(['direct_post', 'direct_post.jwt'])(
    'by %s is verified, with the trust that decided',
    async (responseMode) => {
      const found = await presenter.verified(held, { responseMode }, { disclose: ['permitNumber', 'area'] });
      expect(found).toMatchObject({
        state: 'Verified',
        result: {
          isValid: true,
          errors: [],
          verifiedClaims: { permitNumber: 'P-17' },
          issuer: issuerUrl,
          holderKeyVerified: true,
          x5cChainValid: true,
          statusCheckResult: 'Valid',
          trust: { decision: 'Trusted', assuranceLevel: 'Low' },
        },
      });
      // What was disclosed and not asked for is not kept.
      expect(found.result.verifiedClaims).toEqual({ permitNumber: 'P-17' });
      expect(found.result.trust.evidence).toContainEqual(
        expect.objectContaining({
          kind: 'x509-tenant',
          vouched: true,
          anchorThumbprint: expect.stringMatching(/^[0-9a-f]{64}$/),
        }),
      );
    },
  );

  test('keeps of an object what was asked for, and a registered claim that was', async () => {
    const found = await presenter.verified(held, { requiredClaims: ['/address/town', 'iss'] });
    expect([found.state, found.result.verifiedClaims]).toEqual([
      'Verified',
      { iss: issuerUrl, address: { town: 'Test' } },
    ]);
  });

  test('of an organisation that is known by its DID, or bound to Ed25519, is verified', async () => {
    const byDid = await presenter.hold({ trustAnchor: 'register' }, 'EdDSA');
    expect(await presenter.verified(byDid)).toMatchObject({
      state: 'Verified',
      result: {
        trust: {
          evidence: expect.arrayContaining([expect.objectContaining({ kind: 'register', vouched: true })]),
        },
      },
    });
    const did = `did:platform:org:${fixture.organization.walletAddress}`;
    expect((await presenter.verified(byDid, { acceptedIssuers: [did] })).state).toBe('Verified');
    expect(codes(await presenter.verified(byDid, { acceptedIssuers: ['did:platform:org:w1other'] }))).toEqual(
      ['TRUST_ISSUER_NOT_LISTED'],
    );
  });

  test('is taken once: a second one is refused, also at the same time', async () => {
    const { requestId, request } = await presenter.asked();
    const form = {
      vp_token: JSON.stringify({ credential: [await presenter.present(held, request)] }),
      state: request.state,
    };
    const sent = await Promise.all(Array.from({ length: 8 }, () => presenter.post(requestId, form)));
    expect(sent.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409, 409, 409, 409, 409, 409, 409]);
    const again = await presenter.post(requestId, form);
    expect([again.statusCode, again.json().code]).toEqual([409, 'ALREADY_SUBMITTED']);
  });

  test('tells the wallet nothing about the verdict', async () => {
    const { requestId, request } = await presenter.asked();
    const bad = await presenter.present(held, request, { payload: { nonce: 'other' } });
    const answer = await presenter.answer(requestId, request, { credential: [bad] });
    expect([answer.statusCode, answer.json()]).toEqual([200, {}]);
    expect((await presenter.result(requestId)).json().state).toBe('Failed');
  });

  test.each([
    [
      'without state',
      (form: Record<string, string>) => ({ vp_token: form['vp_token'] ?? '' }),
      'STATE_MISMATCH',
    ],
    [
      'with the state of another request',
      (form: Record<string, string>) => ({ ...form, state: 'x' }),
      'STATE_MISMATCH',
    ],
    ['without vp_token', ({ state = '' }: Record<string, string>) => ({ state }), 'DCQL_INVALID'],
    [
      'with an unknown query',
      (form: Record<string, string>) => ({ ...form, vp_token: '{"other":["x"]}' }),
      'DCQL_UNKNOWN_QUERY_ID',
    ],
    [
      'as a bare string',
      (form: Record<string, string>) => ({ ...form, vp_token: 'eyJ.a.b~' }),
      'LEGACY_DIALECT',
    ],
    [
      'as a JSON string',
      (form: Record<string, string>) => ({ ...form, vp_token: '"eyJ.a.b~"' }),
      'LEGACY_DIALECT',
    ],
    [
      'with an empty list',
      (form: Record<string, string>) => ({ ...form, vp_token: '{"credential":[]}' }),
      'DCQL_INVALID',
    ],
    ['encrypted where plain was asked', () => ({ response: 'a.b.c.d.e' }), 'RESPONSE_MODE_MISMATCH'],
  ])('%s is refused, and the wallet may answer again', async (_, change, code) => {
    const { requestId, request } = await presenter.asked();
    const valid = {
      vp_token: JSON.stringify({ credential: [await presenter.present(held, request)] }),
      state: request.state,
    };
    const answer = await presenter.post(requestId, change(valid));
    expect([answer.statusCode, answer.json().error, answer.json().code]).toEqual([
      400,
      'invalid_request',
      code,
    ]);
    expect((await presenter.post(requestId, { ...valid, presentation_submission: '{}' })).statusCode).toBe(
      200,
    );
  });

  test('in plain, with another key id, or that is no JWE is refused where an encrypted one was asked', async () => {
    const { requestId, request } = await presenter.asked({ responseMode: 'direct_post.jwt' });
    const other = await presenter.asked({ responseMode: 'direct_post.jwt' });
    const vp = { credential: [await presenter.present(held, request)] };
    const payload = { vp_token: vp, state: request.state };
    const good = await presenter.encrypt(request, payload);
    const changed = `${good.slice(0, -4)}${good.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`;
    for (const [form, code] of [
      [{ vp_token: JSON.stringify(vp), state: request.state }, 'RESPONSE_MODE_MISMATCH'],
      [{ response: good, vp_token: '{}' }, 'RESPONSE_MODE_MISMATCH'],
      [{ response: await presenter.encrypt(request, payload, { kid: 'other' }) }, 'RESPONSE_ENCRYPTION'],
      [{ response: await presenter.encrypt(other.request, payload) }, 'RESPONSE_ENCRYPTION'],
      [
        { response: await presenter.encrypt(request, payload, { enc: 'A256CBC-HS512' }) },
        'RESPONSE_ENCRYPTION',
      ],
      [{ response: changed }, 'RESPONSE_ENCRYPTION'],
      [{ response: 'x' }, 'RESPONSE_ENCRYPTION'],
      [
        { response: await presenter.encrypt(request, { vp_token: vp, state: other.request.state }) },
        'STATE_MISMATCH',
      ],
    ] as const) {
      const answer = await presenter.post(requestId, form);
      expect([answer.statusCode, answer.json().code], code).toEqual([400, code]);
    }
    expect((await presenter.post(requestId, { response: good })).statusCode).toBe(200);
  });

  test('of a wallet that declines ends the request', async () => {
    const { requestId, request } = await presenter.asked();
    expect((await presenter.post(requestId, { error: 'access_denied', state: 'x' })).statusCode).toBe(400);
    expect(
      (await presenter.post(requestId, { error: 'access_denied', state: request.state })).statusCode,
    ).toBe(200);
    const found = (await presenter.result(requestId)).json();
    expect([found.state, codes(found)]).toEqual(['Failed', ['WALLET_DECLINED']]);
  });

  test.each(['direct_post', 'direct_post.jwt'])(
    'of a wallet that declines by %s shows no text that changes how the words around it read',
    async (responseMode) => {
      const { requestId, request } = await presenter.asked({ responseMode });
      const declined = { error: 'denied\u202elaitini\u2028', state: request.state };
      const form =
        responseMode === 'direct_post' ? declined : { response: await presenter.encrypt(request, declined) };
      expect((await presenter.post(requestId, form)).statusCode).toBe(200);
      const [{ message }] = (await presenter.result(requestId)).json().result.errors;
      expect(message).toBe('The wallet answered "unknown_error"');
    },
  );

  test('has 1 MiB at most', async () => {
    const { requestId, request } = await presenter.asked();
    const vp_token = JSON.stringify({ credential: ['a'.repeat(1024 * 1024)] });
    const answer = await presenter.post(requestId, { vp_token, state: request.state });
    expect(answer.statusCode).toBe(413);
    expect((await presenter.result(requestId)).json().state).toBe('Pending');
  });

  test('waits while a source of trust is away, and may be repeated', async () => {
    const { requestId, request } = await presenter.asked();
    const form = {
      vp_token: JSON.stringify({ credential: [await presenter.present(held, request)] }),
      state: request.state,
    };
    fixture.outage.anchor = refusal('CERTIFICATES_UNAVAILABLE');
    const answer = await presenter.post(requestId, form);
    expect([answer.statusCode, answer.json().error]).toEqual([503, 'temporarily_unavailable']);
    delete fixture.outage.anchor;
    expect((await presenter.post(requestId, form)).statusCode).toBe(200);
  });
});

describe('the result', () => {
  test("is its creator's alone", async () => {
    fixture.callers
      .set('Bearer one', caller())
      .set('Bearer two', caller())
      .set('Bearer other-service', caller({ kind: 'service', tier: 'service', clientId: 'service-other' }));
    const { requestId } = (await presenter.ask({}, 'Bearer one')).json();
    expect((await presenter.result(requestId, '', 'Bearer one')).json()).toMatchObject({
      state: 'Pending',
      result: null,
    });
    for (const by of ['Bearer two', 'Bearer other-service', 'Bearer service']) {
      const answer = await presenter.result(requestId, '', by);
      expect([answer.statusCode, answer.json().code]).toEqual([404, 'REQUEST_NOT_FOUND']);
    }
  });

  test('waits for the code that comes with the person, where the request redirects', async () => {
    const { requestId, request } = await presenter.asked({ redirectUri: 'https://shop.test/done?a=1' });
    const posted = await presenter.answer(requestId, request, {
      credential: [await presenter.present(held, request)],
    });
    const back = new URL(posted.json().redirect_uri);
    expect([back.origin, back.searchParams.get('a')]).toEqual(['https://shop.test', '1']);
    const code = back.searchParams.get('response_code') ?? '';
    const other = randomBytes(32).toString('base64url');
    for (const query of ['', `?response_code=${other}`]) {
      expect((await presenter.result(requestId, query)).json()).toMatchObject({
        state: 'Submitted',
        result: null,
      });
    }
    expect((await presenter.result(requestId, `?response_code=${code}`)).json().state).toBe('Verified');
    expect((await presenter.result(requestId)).json().state).toBe('Verified');
  });

  test('keeps claims for 15 min, then the verdict', async () => {
    const { requestId, request } = await presenter.asked();
    await presenter.answer(requestId, request, { credential: [await presenter.present(held, request)] });
    fixture.clock.advance(15 * 60_000);
    await expiry(fixture).run(new AbortController().signal);
    const found = (await presenter.result(requestId)).json();
    expect(found).toMatchObject({ state: 'Verified', result: { isValid: true, verifiedClaims: null } });
    expect(found.result.perQuery.credential.verifiedClaims).toBeNull();
  });

  test('of several queries follows their sets', async () => {
    const other = await presenter.hold({ credentialType: 'Other', claims: { a: 1 } });
    const query = (id: string, vct: string) => ({ id, format: 'dc+sd-jwt', meta: { vct_values: [vct] } });
    const declaredQuery = {
      credentials: [
        query('permit', 'urn:platform:credential:site-permit'),
        query('other', 'urn:platform:credential:other'),
      ],
      credential_sets: [{ options: [['permit'], ['other']] }],
    };
    const { requestId, request } = await presenter.asked({
      credentialType: undefined,
      requiredClaims: undefined,
      declaredQuery,
    });
    await presenter.answer(requestId, request, { other: [await presenter.present(other, request)] });
    expect((await presenter.result(requestId)).json()).toMatchObject({
      state: 'Verified',
      result: { perQuery: { other: { isValid: true, verifiedClaims: { a: 1 } } } },
    });
    const all = { ...declaredQuery, credential_sets: undefined };
    const both = await presenter.asked({
      credentialType: undefined,
      requiredClaims: undefined,
      declaredQuery: all,
    });
    await presenter.answer(both.requestId, both.request, {
      other: [await presenter.present(other, both.request)],
    });
    expect((await presenter.result(both.requestId)).json().state).toBe('Failed');
  });

  const queryOf = (id: string) => ({
    id,
    format: 'dc+sd-jwt',
    meta: { vct_values: ['urn:platform:credential:site-permit'] },
  });
  const declared = (declaredQuery: object) =>
    presenter.asked({ credentialType: undefined, requiredClaims: undefined, declaredQuery });

  test('that verified shows nothing of an alternative that failed', async () => {
    const { requestId, request } = await declared({
      credentials: [queryOf('first'), queryOf('second')],
      credential_sets: [{ options: [['first'], ['second']] }],
    });
    await presenter.answer(requestId, request, {
      first: [await presenter.present(held, request, { payload: { nonce: 'other' } })],
      second: [await presenter.present(held, request)],
    });
    const { state, result } = (await presenter.result(requestId)).json();
    expect([state, result.perQuery.first.isValid]).toEqual(['Verified', false]);
    expect(result).toMatchObject({
      isValid: true,
      errors: [],
      issuer: issuerUrl,
      holderKeyVerified: true,
      x5cChainValid: true,
      statusCheckResult: 'Valid',
      trust: { decision: 'Trusted' },
    });
  });

  test('has every presentation of a query with several, all of which must verify', async () => {
    const other = await presenter.hold({ claims: { permitNumber: 'P-18' } });
    const answered = async (how: object) => {
      const { requestId, request } = await declared({
        credentials: [{ ...queryOf('permits'), multiple: true, claims: [{ path: ['permitNumber'] }] }],
      });
      await presenter.answer(requestId, request, {
        permits: [await presenter.present(held, request), await presenter.present(other, request, how)],
      });
      const { state, result } = (await presenter.result(requestId)).json();
      return [state, result.perQuery.permits.verifiedClaims, result.perQuery['permits#2']];
    };
    const first = { permitNumber: 'P-17' };
    expect(await answered({})).toEqual([
      'Verified',
      first,
      expect.objectContaining({ isValid: true, verifiedClaims: { permitNumber: 'P-18' } }),
    ]);
    expect(await answered({ payload: { nonce: 'x' } })).toEqual([
      'Failed',
      first,
      expect.objectContaining({ isValid: false, verifiedClaims: {} }),
    ]);
  });

  test('has no claim for the whole that two credentials contradict', async () => {
    const one = await presenter.hold({ claims: { name: 'Ada', born: 1815, town: 'London' } });
    const other = await presenter.hold({ claims: { name: 'Eve', born: 1815 } });
    const { requestId, request } = await declared({ credentials: [queryOf('one'), queryOf('other')] });
    await presenter.answer(requestId, request, {
      one: [await presenter.present(one, request)],
      other: [await presenter.present(other, request)],
    });
    const { state, result } = (await presenter.result(requestId)).json();
    expect([state, result.verifiedClaims]).toEqual(['Verified', { born: 1815, town: 'London' }]);
    expect([result.perQuery.one.verifiedClaims.name, result.perQuery.other.verifiedClaims.name]).toEqual([
      'Ada',
      'Eve',
    ]);
  });
});

test('a verdict is written whatever characters claims and names have', async () => {
  const claims = { permitNumber: 'P\0-\u{1f3db}', 'floor\0': 2 };
  const held = await presenter.hold({ claims });
  const { state, result } = await presenter.verified(held, { requiredClaims: ['permitNumber', 'floor\0'] });
  expect([state, result.verifiedClaims]).toEqual(['Verified', claims]);
});

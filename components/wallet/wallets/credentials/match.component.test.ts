import { generateKeyPairSync } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { person } from '../../testing/fixture.ts';
import { citizen, type HolderFixture, openHolderFixture } from '../../testing/holder-fixture.ts';

let fixture: HolderFixture;
let { replica, client, issuer, base, store, stored }: HolderFixture = Object.create(null);

beforeAll(async () => {
  fixture = await openHolderFixture('wallet_matches');
  ({ replica, client, issuer, base, store, stored } = fixture);
});

beforeEach(async () => {
  await replica.db.transact((tx) => sql`DELETE FROM held_credentials`.execute(tx));
  issuer.isAway = false;
  issuer.isTrusted = true;
  issuer.statuses.clear();
});

afterAll(() => fixture.close());

const otherKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });

describe('requirements', () => {
  const match = async (...requirements: object[]) =>
    (await client.call('alice', `POST ${base}/match`, { body: { requirements } })).body.matches.map(
      ({ candidates }: { candidates: object[] }) => candidates,
    );

  test('are met by active credentials with the claims and values', async () => {
    const one = await stored();
    replica.clock.advance(1);
    const two = await stored({ claims: { permitNumber: 'P-2' } });
    const required = (claimName: string, expectedValue?: unknown) => ({
      type: issuer.type,
      requiredClaims: [{ claimName, ...(expectedValue !== undefined && { expectedValue }) }],
    });
    const candidate = (credential: { id: string }, ...disclosableClaims: string[]) => ({
      credentialId: credential.id,
      disclosableClaims,
    });
    expect(
      await match(
        required('permitNumber'),
        required('permitNumber', 'P-2'),
        required('/address/city', 'Ghent'),
        required('none'),
        { type: 'urn:other' },
        { type: issuer.type, format: 'mso_mdoc' },
      ),
    ).toEqual([
      [candidate(one, 'permitNumber'), candidate(two, 'permitNumber')],
      [candidate(two, 'permitNumber')],
      [candidate(one, '/address/city')],
      [],
      [],
      [],
    ]);
    // One of another key may have been copied from anyone.
    expect((await store(issuer.sdJwt(otherKey()))).status).toBe(201);
    expect(await match(required('permitNumber', 'P-1'))).toEqual([[candidate(one, 'permitNumber')]]);
    issuer.statuses.set(7, 'Suspended');
    replica.clock.advance(60_000);
    expect(await match(required('permitNumber'))).toEqual([[]]);
  });
});

describe('a request of a verifier', () => {
  const resolved = {
    clientId: 'x509_san_dns:verifier.test',
    verifierHost: 'verifier.test',
    responseUri: 'https://verifier.test/answers',
    responseMode: 'direct_post',
    nonce: 'n',
    state: undefined,
    authState: 'AuthenticUntrusted',
    anchorSetId: undefined,
    reason: 'TRUST_ISSUER_NOT_LISTED',
  } as const;
  const query = (...credentials: object[]) => ({
    credentials: credentials.map((each) => ({
      format: 'dc+sd-jwt',
      meta: { vct_values: [issuer.type] },
      ...each,
    })),
  });
  const ask = (body: object, who = 'alice') =>
    client.call(who, 'POST /api/v1/wallet/presentations/resolve-request', { body });
  const requestUri = 'https://verifier.test/1';
  const answers = (dcql: object) => {
    issuer.resolve = async () => ({ ...resolved, query: dcql });
  };

  test('is shown with the credentials that answer it', async () => {
    const { id } = await stored();
    const claims = [
      { id: 'a', path: ['permitNumber'] },
      { id: 'b', path: ['address', 'city'] },
      { id: 'c', path: ['none'] },
    ];
    answers({
      ...query(
        {
          id: 'permit',
          claims,
          claim_sets: [
            ['a', 'b', 'c'],
            ['a', 'b'],
          ],
        },
        { id: 'none' },
        { id: 'other', meta: { vct_values: ['urn:other'] } },
        { id: 'authority', trusted_authorities: [{ type: 'aki', values: ['AAAA'] }] },
      ),
      credential_sets: [{ options: [['other'], ['permit']], purpose: 'To let you in' }],
    });
    const { status, body } = await ask({ requestUri });
    expect([status, body]).toEqual([
      200,
      {
        clientId: 'x509_san_dns:verifier.test',
        verifierHost: 'verifier.test',
        responseUri: 'https://verifier.test/answers',
        responseMode: 'direct_post',
        nonce: 'n',
        state: null,
        dcqlQuery: expect.objectContaining({ credentials: expect.any(Array) }),
        purpose: 'To let you in',
        verifierAuthState: 'AuthenticUntrusted',
        anchorSetId: null,
        reason: 'TRUST_ISSUER_NOT_LISTED',
        matches: [
          {
            queryId: 'permit',
            candidates: [{ credentialId: id, disclosableClaims: ['permitNumber', '/address/city'] }],
          },
          { queryId: 'none', candidates: [{ credentialId: id, disclosableClaims: [] }] },
          { queryId: 'other', candidates: [] },
          { queryId: 'authority', candidates: [] },
        ],
        satisfiable: true,
        unsatisfiedQueryIds: ['other', 'authority'],
      },
    ]);
    answers(query({ id: 'other', meta: { vct_values: ['urn:other'] } }));
    expect((await ask({ requestUri })).body).toMatchObject({
      satisfiable: false,
      purpose: null,
      unsatisfiedQueryIds: ['other'],
    });
  });

  test('that names no claims is answered by what its issuer signed in the clear alone', async () => {
    const sdJwt = await stored({ payload: { permitClass: 'B' } });
    const mdoc = await store(await issuer.mdoc(fixture.holderJwk));
    const document = { format: 'mso_mdoc', meta: { doctype_value: mdoc.body.docType } };
    answers(query({ id: 'sd-jwt' }, { id: 'mdoc', ...document }));
    expect((await ask({ requestUri })).body.matches).toEqual([
      { queryId: 'sd-jwt', candidates: [{ credentialId: sdJwt.id, disclosableClaims: ['permitClass'] }] },
      { queryId: 'mdoc', candidates: [{ credentialId: mdoc.body.id, disclosableClaims: [] }] },
    ]);
    const requirements = [{ type: issuer.type }];
    const { body } = await client.call('alice', `POST ${base}/match`, { body: { requirements } });
    expect(body.matches[0].candidates).toEqual([
      { credentialId: sdJwt.id, disclosableClaims: ['permitClass'] },
    ]);
  });

  test.each(['To let you in\u202e', 'line\u2028two', 'over\u200bcome', 'bell\x07'])(
    'is shown without a purpose that does not read as it is written: %j',
    async (purpose) => {
      answers({ ...query({ id: 'a' }), credential_sets: [{ options: [['a']], purpose }] });
      expect((await ask({ requestUri })).body).toMatchObject({ clientId: resolved.clientId, purpose: null });
    },
  );

  test('is shown to a person without a wallet, and to nobody without the audience', async () => {
    answers(query({ id: 'a' }));
    client.callers.set('newcomer', citizen());
    expect((await ask({ requestUri }, 'newcomer')).body).toMatchObject({ satisfiable: false });
    client.callers.set('platform', person());
    expect((await ask({ requestUri }, 'platform')).status).toBe(403);
  });

  test('is refused as the judge says, and other failures are outages', async () => {
    for (const [kind, code, status] of [
      ['unprocessable', 'REQUEST_OBJECT_INVALID', 422],
      ['unprocessable', 'REQUEST_HOST_MISMATCH', 422],
      ['unavailable', 'CREDENTIALS_UNAVAILABLE', 503],
    ] as const) {
      issuer.resolve = () => Promise.reject(new AppError(kind, code, 'text'));
      const refused = await ask({ requestUri });
      expect([refused.status, refused.body.code]).toEqual([status, code]);
    }
    for (const body of [{}, { requestUri, requestObject: 'a' }, { requestUri: '' }, { requestUri, other: 1 }])
      expect((await ask(body)).status).toBe(400);
  });
});

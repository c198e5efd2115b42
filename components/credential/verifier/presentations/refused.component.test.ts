import { createHash, createPublicKey, sign, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parseCertificate } from '#core/trust/certificate.ts';
import { type Fixture, openFixture } from '../../testing/fixture.ts';
import { issuingCertificate } from '../../testing/issuing-certificates.ts';
import { type Held, Presenter } from '../../testing/presenter.ts';

let fixture: Fixture;
let presenter: Presenter;
let held: Held;

beforeAll(async () => {
  fixture = await openFixture('credential_refused');
  presenter = new Presenter(fixture);
  held = await presenter.hold();
});

afterAll(() => fixture.close());

beforeEach(() => fixture.revoked.clear());

const codes = ({ result }: { result: { errors: { code: string }[] } }) =>
  result.errors.map(({ code }) => code);

describe('a presentation fails', () => {
  test.each([
    ['with another nonce', { payload: { nonce: 'x' } }, 'KB_NONCE'],
    ['for another verifier', { payload: { aud: 'x509_san_dns:other.test' } }, 'KB_AUD'],
    ['for the host without its prefix', { payload: { aud: 'issuer.test' } }, 'KB_AUD'],
    ['over other disclosures', { payload: { sd_hash: 'x' } }, 'KB_SD_HASH'],
    ['of another type', { header: { typ: 'JWT' } }, 'KB_SIGNATURE'],
    ['without the claim', { disclose: [] }, 'CLAIM_MISSING'],
  ])('%s', async (_, how, code) => {
    expect(codes(await presenter.verified(held, {}, how))).toEqual([code]);
  });

  test('that was made 301 s ago', async () => {
    const iat = presenter.wallet.nowSeconds - 301;
    expect(codes(await presenter.verified(held, {}, { payload: { iat } }))).toEqual(['EXPIRED']);
  });

  test('whose key binding, signature or disclosure is another one', async () => {
    const { requestId, request } = await presenter.asked();
    const presentation = await presenter.present(held, request);
    const parts = presentation.split('~');
    const other = await presenter.hold();
    const foreign = (await presenter.present(other, request)).split('~');
    const alone = `${parts.slice(0, -1).join('~')}~`;
    const swapped = [parts[0], foreign[1], ...parts.slice(2)].join('~');
    const [jws = ''] = parts;
    const flipped = `${jws.slice(0, -4)}${jws.endsWith('AAAA') ? 'BBBB' : 'AAAA'}~${parts.slice(1).join('~')}`;
    const results: string[] = [];
    for (const one of [alone, swapped, flipped, 'x', [...parts.slice(0, -1), foreign.at(-1)].join('~')]) {
      const next = one === alone ? { requestId, request } : await presenter.asked();
      await presenter.answer(next.requestId, next.request, { credential: [one] });
      results.push(...codes((await presenter.result(next.requestId)).json()));
    }
    expect(results).toEqual(['KB_MISSING', 'DIGEST', 'SIGNATURE', 'FORMAT', 'KB_SIGNATURE']);
  });

  test('of another type, or with another value than expected', async () => {
    expect(codes(await presenter.verified(held, { credentialType: 'urn:x:other' }))).toEqual([
      'VCT_MISMATCH',
    ]);
    const requiredClaims = [{ claimName: 'permitNumber', expectedValue: 'P-18' }];
    expect(codes(await presenter.verified(held, { requiredClaims }))).toEqual(['CLAIM_VALUE']);
    const right = [{ claimName: '/address/town', expectedValue: 'Test' }];
    expect((await presenter.verified(held, { requiredClaims: right })).state).toBe('Verified');
  });

  test.each([
    ['number', 1.85, 1.95],
    ['null', null, false],
    ['object', { town: 'Test' }, { town: 'Test', street: 'A' }],
    ['list', ['A', 'B'], ['B', 'A']],
    ['text', 'A', ['A']],
  ])('with another %s than expected, also one that a query cannot name', async (_, value, other) => {
    const one = await presenter.hold({ claims: { value: other } });
    const ask = (expectedValue: unknown) => ({ requiredClaims: [{ claimName: 'value', expectedValue }] });
    expect(codes(await presenter.verified(one, ask(value)))).toEqual(['CLAIM_VALUE']);
    expect((await presenter.verified(one, ask(other))).state).toBe('Verified');
  });

  test('while its credential is suspended, and for good once it is revoked', async () => {
    const one = await presenter.hold();
    const change = (verb: string) =>
      fixture.app.inject({
        method: 'POST',
        url: `/api/v1/credentials/${one.credentialId}/${verb}`,
        headers: { authorization: 'Bearer service' },
        payload: { reason: 'test' },
      });
    await change('suspend');
    const suspended = await presenter.verified(one);
    expect([suspended.result.statusCheckResult, codes(suspended)]).toEqual([
      'Suspended',
      ['STATUS_SUSPENDED'],
    ]);
    expect(suspended.result.verifiedClaims).toEqual({});
    await change('reinstate');
    expect((await presenter.verified(one)).state).toBe('Verified');
    await change('revoke');
    expect(codes(await presenter.verified(one))).toEqual(['STATUS_REVOKED']);
  });

  test('behind its expiry', async () => {
    const one = await presenter.hold({ validitySeconds: 60 });
    fixture.clock.advance(121_000);
    expect(codes(await presenter.verified(one))).toEqual(['EXPIRED']);
  });

  test('under a certificate that was revoked, or of an authority that is not known', async () => {
    const [leaf] = fixture.organization.certificate.chain;
    fixture.revoked.add(parseCertificate(leaf ?? new Uint8Array()).thumbprint);
    const revoked = await presenter.verified(held, { trustPolicy: { sources: [{ kind: 'x509-tenant' }] } });
    expect(codes(revoked)).toEqual(['TRUST_CERT_REVOKED']);
    fixture.revoked.clear();
    const kept = fixture.organization.certificate;
    fixture.organization.certificate = await issuingCertificate('issuer.test', fixture.clock.nowMs());
    const strange = await presenter.verified(held, { trustPolicy: { sources: [{ kind: 'x509-tenant' }] } });
    fixture.organization.certificate = kept;
    expect(codes(strange)).toContain('TRUST_CHAIN_INVALID');
  });

  test('without a trust list, and is verified with the one that has its root', async () => {
    const trustPolicy = {
      sources: [{ kind: 'trustlist', trustListId: 'eu', confersAssurance: 'High' }],
      minAssuranceLevel: 'High',
    };
    expect(codes(await presenter.verified(held, { trustPolicy }))).toEqual(['TRUSTLIST_UNAVAILABLE']);
    const root = parseCertificate(new X509Certificate(fixture.organization.certificate.rootPem).raw);
    const nowMs = fixture.clock.nowMs();
    const snapshot = {
      sequenceNumber: 7,
      anchors: [root],
      issuedAtMs: nowMs - 1000,
      nextUpdateMs: nowMs - 1,
    };
    fixture.trustLists.set('eu', { snapshot, isStrict: false });
    const found = await presenter.verified(held, { trustPolicy });
    expect(found).toMatchObject({ state: 'Verified', result: { trust: { assuranceLevel: 'High' } } });
    expect(found.result.trust.evidence[0]).toMatchObject({
      trustListId: 'eu#7',
      freshness: 'Stale',
      vouched: true,
    });
    fixture.trustLists.set('eu', { snapshot, isStrict: true });
    expect(codes(await presenter.verified(held, { trustPolicy }))).toEqual(['TRUSTLIST_STALE']);
  });

  test('under a certificate that the list of its authority revokes, or whose list cannot be had', async () => {
    const [kept, nowMs] = [fixture.organization.certificate, fixture.clock.nowMs()];
    const listUri = 'http://authority.test/issuers.crl';
    const certificate = await issuingCertificate('issuer.test', nowMs, { listUri });
    fixture.organization.certificate = certificate;
    const one = await presenter.hold({ statusList: false });
    const trustPolicy = { sources: [{ kind: 'trustlist', trustListId: 'eu' }] };
    const verified = (more: object = {}) => presenter.verified(one, { trustPolicy, ...more });
    const root = parseCertificate(new X509Certificate(certificate.rootPem).raw);
    const snapshot = { sequenceNumber: 8, anchors: [root], issuedAtMs: nowMs, nextUpdateMs: undefined };
    const other = parseCertificate(new X509Certificate(kept.rootPem).raw);
    fixture.trustLists.set('eu', { snapshot: { ...snapshot, anchors: [other] }, isStrict: true });
    expect(codes(await verified())).toEqual(['TRUST_ISSUER_NOT_LISTED']);
    // The authority is not trusted: its address is not asked.
    expect(fixture.fetched).not.toContain(listUri);
    fixture.trustLists.set('eu', { snapshot, isStrict: true });
    expect(codes(await verified())).toEqual(['TRUST_CRL_UNAVAILABLE']);
    const open = await verified({ revocationCheckPolicy: 'FailOpen' });
    expect(open.state).toBe('Verified');
    expect(open.result.trust.evidence[0]).toMatchObject({ vouched: true, reason: 'TRUST_CRL_UNAVAILABLE' });
    fixture.clock.advance(30_000);
    fixture.elsewhere.set(listUri, await certificate.revocationList(['03'], nowMs));
    const good = await verified();
    expect([good.state, codes(good)]).toEqual(['Verified', []]);
    fixture.clock.advance(3_600_000);
    fixture.elsewhere.set(listUri, await certificate.revocationList(['02'], fixture.clock.nowMs()));
    await fixture.revocations.refreshing().run(new AbortController().signal);
    expect(codes(await verified())).toEqual(['TRUST_CERT_REVOKED']);
    expect(codes(await verified({ revocationCheckPolicy: 'FailOpen' }))).toEqual(['TRUST_CERT_REVOKED']);
    fixture.organization.certificate = kept;
  });
});

test('the key of a presentation is the key of its credential: the private key of the issuer is of no use', async () => {
  const { requestId, request } = await presenter.asked();
  const presentation = await presenter.present(held, request);
  const bound = presentation.slice(0, presentation.lastIndexOf('~') + 1);
  const { privateKey } = fixture.organization.certificate;
  const input = [
    { alg: 'ES256', typ: 'kb+jwt', jwk: createPublicKey(privateKey).export({ format: 'jwk' }) },
    {
      iat: presenter.wallet.nowSeconds,
      aud: request.client_id,
      nonce: request.nonce,
      sd_hash: createHash('sha256').update(bound).digest('base64url'),
    },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  await presenter.answer(requestId, request, {
    credential: [`${bound}${input}.${signature.toString('base64url')}`],
  });
  expect(codes((await presenter.result(requestId)).json())).toEqual(['KB_SIGNATURE']);
});

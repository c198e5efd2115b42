import { sign } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Fixture, openFixture } from '../../testing/fixture.ts';
import { issuingCertificate } from '../../testing/issuing-certificates.ts';
import { type Held, Presenter } from '../../testing/presenter.ts';

let fixture: Fixture;
let presenter: Presenter;

beforeAll(async () => {
  fixture = await openFixture('credential_foreign_status');
  presenter = new Presenter(fixture);
});

afterAll(() => fixture.close());

describe('the status of a credential of another issuer', () => {
  const uri = 'https://other.test/lists/1';

  /** A credential and its list, signed by a test issuer. */
  async function foreign(
    list: Readonly<Record<string, unknown>> = {},
    signer?: { privateKey: typeof fixture.organization.certificate.privateKey },
  ) {
    const { privateKey, chain } = fixture.organization.certificate;
    const x5c = chain.map((der) => Buffer.from(der).toString('base64'));
    const jws = (header: object, payload: object, key = privateKey) => {
      const input = [header, payload]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.');
      const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
      return `${input}.${signature.toString('base64url')}`;
    };
    const iat = presenter.wallet.nowSeconds;
    const one = await presenter.hold({ statusList: false });
    const compact = `${jws(
      { alg: 'ES256', typ: 'dc+sd-jwt', x5c },
      {
        iss: 'https://other.test',
        vct: 'urn:platform:credential:site-permit',
        iat,
        permitNumber: 'F-1',
        cnf: { jwk: one.key.jwk },
        status: { status_list: { idx: 5, uri } },
      },
    )}~`;
    const lst = deflateSync(Buffer.alloc(16)).toString('base64url');
    const token = jws(
      { alg: 'ES256', typ: 'statuslist+jwt', x5c },
      { sub: uri, iat, exp: iat + 3600, ttl: 60, status_list: { bits: 1, lst }, ...list },
      signer?.privateKey ?? privateKey,
    );
    fixture.elsewhere.set(uri, Buffer.from(token));
    return { ...one, compact };
  }

  const statusOf = async (one: Held, revocationCheckPolicy = 'FailClosed') => {
    const { state, result } = await presenter.verified(one, { revocationCheckPolicy });
    return [state, result.statusCheckResult];
  };

  beforeEach(() => {
    // Lists are kept for their ttl.
    fixture.clock.advance(61_000);
    fixture.elsewhere.clear();
  });

  test('is read from its list', async () => {
    expect(await statusOf(await foreign())).toEqual(['Verified', 'Valid']);
    fixture.clock.advance(61_000);
    const lst = deflateSync(Buffer.from([0b0010_0000])).toString('base64url');
    expect(await statusOf(await foreign({ status_list: { bits: 1, lst } }))).toEqual(['Failed', 'Revoked']);
  });

  test('is read from the next list once the kept one has expired', async () => {
    const iat = presenter.wallet.nowSeconds;
    expect(await statusOf(await foreign({ exp: iat + 30, ttl: 3600 }))).toEqual(['Verified', 'Valid']);
    fixture.clock.advance(100_000);
    expect(await statusOf(await foreign())).toEqual(['Verified', 'Valid']);
  });

  test('is read from one list for its ttl, also where the list was the same before', async () => {
    const one = await foreign();
    const fetches = async () => {
      fixture.fetched.length = 0;
      expect(await statusOf(one)).toEqual(['Verified', 'Valid']);
      return fixture.fetched.length;
    };
    expect([await fetches(), await fetches()]).toEqual([1, 0]);
    fixture.clock.advance(61_000);
    expect([await fetches(), await fetches()]).toEqual([1, 0]);
  });

  test.each([
    ['the list is of another address', { sub: 'https://other.test/lists/2' }],
    ['the list has expired', { iat: 1, exp: 2 }],
    [
      'the place is outside',
      { status_list: { bits: 8, lst: deflateSync(Buffer.alloc(5)).toString('base64url') } },
    ],
    [
      'the list inflates without end',
      { status_list: { bits: 1, lst: deflateSync(Buffer.alloc(64 * 1024 * 1024)).toString('base64url') } },
    ],
    [
      'another list follows the list',
      {
        status_list: {
          bits: 1,
          lst: Buffer.concat([0, 0xff].map((byte) => deflateSync(Buffer.alloc(16, byte)))).toString(
            'base64url',
          ),
        },
      },
    ],
    ['the list is not compressed', { status_list: { bits: 1, lst: 'AAAA' } }],
    [
      'the value is not known',
      { status_list: { bits: 8, lst: deflateSync(Buffer.alloc(16, 9)).toString('base64url') } },
    ],
  ])('cannot be learnt when %s', async (_, list) => {
    const one = await foreign(list);
    expect(await statusOf(one)).toEqual(['Failed', 'Unavailable']);
    expect(await statusOf(one, 'FailOpen')).toEqual(['Verified', 'Unavailable']);
  });

  test('is not read from a list that was verified for another certificate', async () => {
    const listed = fixture.organization.certificate;
    expect(await statusOf(await foreign())).toEqual(['Verified', 'Valid']);
    fixture.organization.certificate = await issuingCertificate('issuer.test', fixture.clock.nowMs());
    try {
      expect(await statusOf(await foreign({}, listed))).toEqual(['Failed', 'Unavailable']);
    } finally {
      fixture.organization.certificate = listed;
    }
    expect(await statusOf(await foreign())).toEqual(['Verified', 'Valid']);
  });

  test('is not asked for while the issuer is not trusted', async () => {
    const one = await foreign();
    fixture.fetched.length = 0;
    const policy = { trustPolicy: { sources: [{ kind: 'did-allowlist', allowedIssuers: ['did:x:y'] }] } };
    const { result } = await presenter.verified(one, policy);
    expect([result.statusCheckResult, fixture.fetched]).toEqual(['Unavailable', []]);
    expect(result.errors.map(({ code }: { code: string }) => code)).toEqual(['TRUST_ISSUER_NOT_LISTED']);
  });

  test('cannot be learnt from a list of another key, or while the host is away', async () => {
    const stranger = await issuingCertificate('other.test', fixture.clock.nowMs());
    const one = await foreign({}, stranger);
    expect(await statusOf(one)).toEqual(['Failed', 'Unavailable']);
    fixture.elsewhere.clear();
    expect(await statusOf(one)).toEqual(['Failed', 'Unavailable']);
    expect(await statusOf(one, 'FailOpen')).toEqual(['Verified', 'Unavailable']);
  });
});

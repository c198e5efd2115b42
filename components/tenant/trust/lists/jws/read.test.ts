import { sign } from 'node:crypto';
import { createLoTE, service, signLoTE, trustedEntity } from '@owf/eudi-lote';
import { beforeAll, describe, expect, it } from 'vitest';
import { GRANTED, jwsOf, makeCertificate, type TestCertificate, WITHDRAWN } from '../lists.fixture.ts';
import type { Pin } from '../values/signers.ts';
import { readJws } from './read.ts';

const PID = 'http://uri.etsi.org/19602/SvcType/PID/Issuance';
const PUB_EAA = 'http://uri.etsi.org/19602/SvcType/PubEAA/Issuance';
const NOTIFIED = 'http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/notified';

let signer: TestCertificate;
let stranger: TestCertificate;
let anchor: TestCertificate;

beforeAll(async () => {
  [signer, stranger, anchor] = await Promise.all([
    makeCertificate({ name: 'Signer' }),
    makeCertificate({ name: 'Stranger' }),
    makeCertificate({ name: 'Anchor' }),
  ]);
});

const read = (text: string, pin: Partial<Pin> = {}) =>
  readJws(text, { signerSha256: signer.sha256, nowMs: Date.UTC(2026, 5, 1), ...pin });

function serviceWith(type: string, status?: string) {
  const built = service().name('Issuance').type(type).addCertificate(anchor.base64);
  return (status === undefined ? built : built.status(status)).build();
}

function listWith(services: readonly ReturnType<typeof serviceWith>[]) {
  const address = { StreetAddress: 'Main Street 1', Locality: 'Berlin', PostalCode: '10115', Country: 'DE' };
  const entity = services.reduce(
    (built, one) => built.addService(one),
    trustedEntity().name('Provider').postalAddress(address).email('a@example.org'),
  );
  const operator = [{ lang: 'en', value: 'Test Operator' }];
  const scheme = { SchemeOperatorName: operator, SchemeTerritory: 'EU', LoTESequenceNumber: 5 };
  const times = { ListIssueDateTime: '2026-01-01T00:00:00Z', NextUpdate: '2050-01-01T00:00:00Z' };
  return createLoTE({ ...scheme, ...times }, [entity.build()]);
}

const headerOf = (more: object = {}) => ({ alg: 'ES256', x5c: [signer.base64], ...more });
const signJws = (header: object, payload: unknown, by = signer) => jwsOf(payload, by, header);

describe('a list of trusted entities (ETSI TS 119 602)', () => {
  it('of another implementation is read with its scheme and services', async () => {
    const pem = `-----BEGIN CERTIFICATE-----\n${signer.base64}\n-----END CERTIFICATE-----`;
    const { jws } = await signLoTE({
      lote: listWith([
        serviceWith(PID),
        serviceWith(PID, GRANTED),
        serviceWith(PID, WITHDRAWN),
        serviceWith(PUB_EAA),
        serviceWith(PUB_EAA, NOTIFIED),
        serviceWith('http://uri.etsi.org/19602/SvcType/PID/Revocation'),
        serviceWith('https://example.org/SvcType/PID/Issuance'),
      ]),
      keyId: 'signer',
      certificates: [pem],
      signer: (input) =>
        sign('sha256', Buffer.from(input), { key: signer.key, dsaEncoding: 'ieee-p1363' }).toString(
          'base64url',
        ),
    });
    const { content, signer: found } = await read(jws);
    expect(found.thumbprint).toBe(signer.sha256);
    const { services, ...scheme } = content;
    expect(scheme).toEqual({
      format: 'jws',
      sequenceNumber: 5,
      schemeTerritory: 'EU',
      schemeOperatorName: 'Test Operator',
      listIssueAtMs: Date.UTC(2026, 0, 1),
      nextUpdateAtMs: Date.UTC(2050, 0, 1),
    });
    expect(services.map(({ issues, isGranted }) => [issues, isGranted])).toEqual([
      [true, true],
      [true, true],
      [true, false],
      [true, false],
      [true, true],
      [false, true],
      [false, true],
    ]);
    expect(services[0]?.certificates).toEqual([anchor.base64]);
  });

  it.each([
    ['no list', { other: 1 }],
    ['an array', []],
    ['text that is no JSON', '{'],
    ['a member twice', '{"LoTE":{},"LoTE":{}}'],
  ])('is malformed with %s', async (_name, payload) => {
    await expect(read(signJws(headerOf(), payload))).rejects.toMatchObject({ kind: 'malformed' });
  });

  it.each([
    ['another version', { LoTEVersionIdentifier: 2 }],
    ['a fraction as the sequence number', { LoTESequenceNumber: 1.5 }],
    ['the sequence number 0', { LoTESequenceNumber: 0 }],
    ['a sequence number beyond a safe integer', { LoTESequenceNumber: 2 ** 60 }],
    ['an issue that is no time', { ListIssueDateTime: 'today' }],
    ['a name with a NUL', { SchemeOperatorName: [{ lang: 'en', value: 'a\u0000b' }] }],
    ['no name', { SchemeOperatorName: [] }],
    ['a long territory', { SchemeTerritory: 'EUR' }],
  ])('is malformed with %s', async (_name, change) => {
    const { LoTE: list } = listWith([serviceWith(PID)]);
    const scheme = { ...list.ListAndSchemeInformation, ...change };
    const text = signJws(headerOf(), { LoTE: { ...list, ListAndSchemeInformation: scheme } });
    await expect(read(text)).rejects.toMatchObject({ kind: 'malformed' });
  });

  it('has no next update when it is null', async () => {
    const { LoTE: list } = listWith([serviceWith(PID)]);
    const scheme = { ...list.ListAndSchemeInformation, NextUpdate: null };
    const { content } = await read(
      signJws(headerOf(), { LoTE: { ...list, ListAndSchemeInformation: scheme } }),
    );
    expect(content.nextUpdateAtMs).toBeUndefined();
  });
});

describe('its signature', () => {
  const valid = (more: object = {}) => signJws(headerOf(more), listWith([serviceWith(PID)]));

  it('may be by any algorithm of the list that fits the key', async () => {
    await expect(
      read(valid({ typ: 'trustlist+jwt', crit: ['sigT'], sigT: '2026-01-01T00:00:00Z' })),
    ).resolves.toBeDefined();
    await expect(read(valid({ crit: ['b64'], b64: true }))).resolves.toBeDefined();
  });

  it.each([
    ['none', { alg: 'none' }],
    ['an HMAC', { alg: 'HS256' }],
    ['an algorithm of another key', { alg: 'RS256' }],
    ['a critical extension that is unknown', { crit: ['x'], x: 1 }],
    ['a critical extension that is absent', { crit: ['sigT'] }],
    ['an unencoded payload', { crit: ['b64'], b64: false }],
    ['a detached payload', { sigD: { mId: 'x' } }],
    ['no certificate', { x5c: undefined }],
    ['a certificate that is none', { x5c: ['AAAA'] }],
    ['the thumbprint of another certificate', { 'x5t#S256': 'AAAA' }],
    ['its key in the header', { x5c: undefined, jwk: { kty: 'EC' } }],
  ])('is refused with %s', async (_name, change) => {
    await expect(read(valid(change))).rejects.toMatchObject({ name: 'ListFault', kind: 'signature' });
  });

  it('is refused when it is of another signer, whatever certificates follow the first', async () => {
    const list = listWith([serviceWith(PID)]);
    const forged = signJws(headerOf(), list, stranger);
    await expect(read(forged)).rejects.toThrow('does not fit');
    const both = signJws({ ...headerOf(), x5c: [stranger.base64, signer.base64] }, list, stranger);
    await expect(read(both)).rejects.toThrow('pinned');
    expect((await read(both, { signerSha256: undefined })).signer.thumbprint).toBe(stranger.sha256);
  });

  it('is refused when a byte of header or payload differs', async () => {
    const [header = '', payload = '', signature = ''] = valid().split('.');
    const other = Buffer.from(JSON.stringify(headerOf({ kid: 'x' }))).toString('base64url');
    const changed = Buffer.from(payload, 'base64url')
      .toString()
      .replace('"LoTESequenceNumber":5', '"LoTESequenceNumber":6');
    for (const text of [
      `${other}.${payload}.${signature}`,
      `${header}.${Buffer.from(changed).toString('base64url')}.${signature}`,
      `${header}.${payload}.${signature.slice(0, -4)}AAAA`,
    ]) {
      await expect(read(text)).rejects.toMatchObject({ kind: 'signature' });
    }
  });
});

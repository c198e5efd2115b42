import { beforeAll, describe, expect, it } from 'vitest';
import {
  CA_QC,
  EXCLUSIVE,
  GRANTED,
  INCLUSIVE,
  listBody,
  makeCertificate,
  rootClose,
  rootOpen,
  type SignatureWish,
  signatureOf,
  signByXmlsec,
  signList,
  type TestCertificate,
  type TestList,
  verifyByXmlsec,
  WITHDRAWN,
  xmlsecAbsence,
} from '../lists.fixture.ts';
import type { Pin } from '../values/signers.ts';
import { MALFORMATIONS, PROLOGUES, REFUSED_SIGNATURES, REFUSED_TRANSFORMS } from './hostile.fixture.ts';
import { readXml } from './read.ts';
import { prepareLibrary } from './verify.ts';

const nowMs = Date.UTC(2026, 5, 1);

let signer: TestCertificate;
let stranger: TestCertificate;
let anchor: TestCertificate;
let list: TestList;

beforeAll(async () => {
  prepareLibrary();
  [signer, stranger, anchor] = await Promise.all([
    makeCertificate({ name: 'Signer' }),
    makeCertificate({ name: 'Stranger' }),
    makeCertificate({ name: 'Anchor' }),
  ]);
  list = { sequence: 7, services: [{ certificates: [anchor.base64] }] };
});

const read = (text: string, pin: Partial<Pin> = {}) =>
  readXml(text, { signerSha256: signer.sha256, nowMs, ...pin });
const signed = (wish: Partial<SignatureWish> = {}, given: TestList = list) =>
  signList(given, { signer, ...wish });

async function expectFault(text: string, kind: 'malformed' | 'signature', message: string | RegExp) {
  await expect(read(text)).rejects.toMatchObject({ name: 'ListFault', kind });
  await expect(read(text)).rejects.toThrow(message);
}

describe('a trusted list (ETSI TS 119 612)', () => {
  it('is read with its scheme and services', async () => {
    const { content, signer: found } = await read(signed());
    expect(content).toEqual({
      format: 'xml',
      sequenceNumber: 7,
      schemeTerritory: 'DE',
      schemeOperatorName: 'Test Operator',
      listIssueAtMs: Date.UTC(2026, 0, 1),
      nextUpdateAtMs: Date.UTC(2050, 0, 1),
      services: [
        { type: CA_QC, status: GRANTED, issues: true, isGranted: true, certificates: [anchor.base64] },
      ],
    });
    expect(found).toEqual({ subjectDn: 'C=DE, O=Operator, CN=Signer', thumbprint: signer.sha256 });
  });

  it('may have version 5, no next update, and services of other types and states', async () => {
    const services = [
      { type: 'http://uri.etsi.org/TrstSvc/Svctype/CA/PKC', status: WITHDRAWN, certificates: [] },
      { type: 'http://uri.etsi.org/TrstSvc/Svctype/TSA/QTST', certificates: [] },
    ];
    const { content } = await read(signed({}, { version: 5, nextUpdate: null, services }));
    expect(content.nextUpdateAtMs).toBeUndefined();
    expect(content.services).toMatchObject([
      { issues: true, isGranted: false },
      { issues: false, isGranted: true },
    ]);
  });

  it.each([
    ['version 4', { version: 4 }, 'neither 5 nor 6'],
    ['sequence 0', { sequence: 0 }, 'TSLSequenceNumber'],
    ['a sequence beyond a safe integer', { sequence: '9007199254740993' }, 'TSLSequenceNumber'],
    ['a sequence that is no number', { sequence: '1e3' }, 'TSLSequenceNumber'],
    ['a time without a zone', { issued: '2026-01-01T00:00:00' }, 'ListIssueDateTime'],
    ['a next update that is no time', { nextUpdate: 'soon' }, 'NextUpdate'],
    ['a territory that is no code', { territory: 'Germany' }, 'territory'],
    ['an operator with a control of direction', { operator: 'abc\u202edef' }, 'readable name'],
    ['an operator without a name', { operator: '' }, 'readable name'],
  ] satisfies [string, TestList, string][])('is malformed with %s', async (_name, given, message) => {
    await expectFault(signed({}, given), 'malformed', message);
  });

  it('is malformed with an element inside a value', async () => {
    await expectFault(signed({}, { territory: '<x>DE</x>' }), 'malformed', 'text alone');
  });

  it('is malformed with two values where there is one', async () => {
    await expectFault(
      signed({}, { territory: 'DE</SchemeTerritory><SchemeTerritory>FR' }),
      'malformed',
      'twice',
    );
  });
});

describe('signatures that are accepted', () => {
  it.each([
    ['P-256', 'sha256', false],
    ['P-384', 'sha384', false],
    ['P-521', 'sha512', false],
    ['RSA-2048', 'sha256', false],
    ['RSA-2048', 'sha512', false],
    ['RSA-2048', 'sha256', true],
    ['RSA-2048', 'sha384', true],
  ] as const)('%s with %s, PSS %s', async (algorithm, hash, pss) => {
    const own = await makeCertificate({ algorithm });
    const text = signList(list, { signer: own, hash, pss });
    const { content } = await read(text, { signerSha256: own.sha256 });
    expect(content.sequenceNumber).toBe(7);
    // the same signature under another key
    const carried = [own.base64, stranger.base64];
    const other = signList(list, { signer: own, hash, pss, carried, named: null });
    await expect(read(other, { signerSha256: stranger.sha256 })).rejects.toMatchObject({ kind: 'signature' });
  });

  it('by the pinned one of several certificates, wherever it stands', async () => {
    const text = signed({ carried: [stranger.base64, signer.base64] });
    expect((await read(text)).signer.thumbprint).toBe(signer.sha256);
  });

  it('by any signer when a person has confirmed it', async () => {
    const found = await read(signed({ signer: stranger }), { signerSha256: undefined });
    expect(found.signer.thumbprint).toBe(stranger.sha256);
  });

  it('with digests by SHA-384 and SHA-512', async () => {
    for (const digest of ['sha384', 'sha512'] as const) {
      expect((await read(signed({ digest }))).content.sequenceNumber).toBe(7);
    }
  });

  it('that covers the root by its Id, which no other element may have', async () => {
    const text = signed({ listReference: 'Id="list" URI="#TL"' });
    expect((await read(text)).content.sequenceNumber).toBe(7);
    const inner = `${rootOpen}${listBody(list)}${rootClose}`;
    const moved = text.replace('Id="TL"', 'Id="TM"').replace('<ds:Signature', `${inner}<ds:Signature`);
    await expectFault(moved, 'signature', 'must cover the whole list');
    const taken = text.replace('Id="TL"', 'Id="TM"').replace('<TSPServices>', '<TSPServices Id="TL">');
    await expectFault(taken, 'signature', 'must cover the whole list');
    const unnamed = text.replace(' Id="TL"', '');
    await expectFault(unnamed, 'signature', 'must cover the whole list');
  });

  it('whose properties name the certificate by SHA-1, as many lists of version 5 do', async () => {
    const { content } = await read(signed({ namedDigest: 'sha1' }));
    expect(content.sequenceNumber).toBe(7);
    const other = signed({ namedDigest: 'sha1', named: stranger.base64 });
    await expectFault(other, 'signature', 'name another certificate');
  });

  it('of xmlsec1, RSA and ECDSA, exclusive and inclusive', async (context) => {
    const absent = xmlsecAbsence();
    if (absent !== undefined) return context.skip(absent);
    for (const algorithm of ['RSA-2048', 'P-256', 'P-384'] as const) {
      const own = await makeCertificate({ algorithm });
      for (const canonicalization of [EXCLUSIVE, INCLUSIVE]) {
        const text = signByXmlsec(
          { ...list, operator: 'Ü &amp; Söhne &lt;GmbH&gt; €' },
          own,
          canonicalization,
        );
        const { content } = await read(text, { signerSha256: own.sha256 });
        expect(content.schemeOperatorName).toBe('Ü & Söhne <GmbH> €');
        expect(content.services).toMatchObject([{ issues: true, isGranted: true }]);
        const changed = text.replace('granted', 'Granted');
        await expect(read(changed, { signerSha256: own.sha256 })).rejects.toMatchObject({
          kind: 'signature',
        });
      }
    }
  });

  it('are those that xmlsec1 accepts, for the lists that these tests sign themselves', (context) => {
    const absent = xmlsecAbsence();
    if (absent !== undefined) return context.skip(absent);
    verifyByXmlsec(signed(), signer);
    expect(() => verifyByXmlsec(signed().replace('granted', 'Granted'), signer)).toThrow();
  });
});

describe('signatures that are refused', () => {
  it('of another signer than the pinned one, although the certificate of the pinned one is there', async () => {
    await expectFault(signed({ signer: stranger }), 'signature', 'not signed by the pinned signer');
    const carried = [signer.base64, stranger.base64];
    await expectFault(signed({ signer: stranger, carried, named: null }), 'signature', 'does not fit');
  });

  it('whose properties name another certificate', async () => {
    await expectFault(signed({ named: stranger.base64 }), 'signature', 'name another certificate');
  });

  it.each([
    ['no certificate', []],
    ['no certificate but text', ['AAAA']],
  ])('with %s', async (_name, carried) => {
    await expectFault(signed({ carried }), 'signature', /certificate/);
  });

  it('with more than ten certificates', async () => {
    await expect(
      read(signed({ carried: Array.from({ length: 10 }, () => signer.base64) })),
    ).resolves.toBeDefined();
    const carried = Array.from({ length: 11 }, () => signer.base64);
    await expectFault(signed({ carried }), 'signature', '1 to 10 certificates');
  });

  it('with PEM, or bytes behind a certificate', async () => {
    const pem = Buffer.from(`-----BEGIN CERTIFICATE-----\n${signer.base64}\n-----END CERTIFICATE-----\n`);
    const longer = Buffer.concat([signer.der, Buffer.from([0])]);
    for (const bytes of [pem, longer]) {
      await expectFault(signed({ carried: [bytes.toString('base64')] }), 'signature', 'no certificate');
    }
  });

  it.each([
    ['expired', { notAfter: '2026-05-31T00:00:00Z' }],
    ['not valid yet', { notBefore: '2026-06-02T00:00:00Z' }],
  ])('of a signer whose certificate is %s', async (_name, wish) => {
    const own = await makeCertificate(wish);
    const text = signList(list, { signer: own });
    await expect(read(text, { signerSha256: own.sha256 })).rejects.toThrow('not valid now');
  });

  it('by RSA with 1024 bits, and by SHA-1 in the signature or a digest', async () => {
    const weak = await makeCertificate({ algorithm: 'RSA-1024' });
    const text = signList(list, { signer: weak });
    await expect(read(text, { signerSha256: weak.sha256 })).rejects.toThrow('too weak');
    const rsa = await makeCertificate({ algorithm: 'RSA-2048' });
    const sha1 = signList(list, { signer: rsa, hash: 'sha1' });
    await expect(read(sha1, { signerSha256: rsa.sha256 })).rejects.toThrow('algorithm of the signature');
    await expectFault(signed({ digest: 'sha1' }), 'signature', 'weaker than SHA-256');
  });

  it('by an HMAC whose key is the public one', async () => {
    const text = signed().replace(/xmldsig-more#ecdsa-sha256/, 'xmldsig-more#hmac-sha256');
    await expectFault(text, 'signature', 'algorithm of the signature');
  });

  it('whose algorithm is for another kind of key', async () => {
    const text = signed().replace('#ecdsa-sha256', '#rsa-sha256');
    await expectFault(text, 'signature', 'does not fit the key');
  });

  it.each(Object.entries(REFUSED_TRANSFORMS))('with the transforms: %s', async (_name, listTransforms) => {
    await expectFault(signed({ listTransforms }), 'signature', /transform/);
  });

  it.each(Object.entries(REFUSED_SIGNATURES))('when it %s', async (_name, [wish, message]) => {
    await expectFault(signed(wish), 'signature', message);
  });

  it('when a byte of the list, of its signature or of its properties differs', async () => {
    const text = signed();
    const value = /<ds:SignatureValue>(.)/.exec(text)?.[1] ?? '';
    const changes = [
      [anchor.base64, stranger.base64],
      ['<TSLSequenceNumber>7<', '<TSLSequenceNumber>8<'],
      ['2026-01-01T00:00:00Z</xades', '2026-01-02T00:00:00Z</xades'],
      [`<ds:SignatureValue>${value}`, `<ds:SignatureValue>${value === 'A' ? 'B' : 'A'}`],
    ] as const;
    for (const [from, to] of changes) {
      expect(text).toContain(from);
      await expectFault(text.replace(from, to), 'signature', 'does not fit');
    }
    await expectFault(
      text.replace('<ds:SignatureValue>', '<ds:SignatureValue>!'),
      'signature',
      'does not fit',
    );
  });

  it('when there is none', async () => {
    await expectFault(`${rootOpen}${listBody(list)}${rootClose}`, 'signature', 'no signature');
  });
});

describe('XML that is refused before anything is verified', () => {
  it.each(Object.entries(PROLOGUES))('with %s', async (_name, prologue) => {
    await expectFault(`${prologue}${signed()}`, 'malformed', 'document type');
  });

  it.each(Object.entries(MALFORMATIONS))('with %s', async (_name, change) => {
    const text = signed();
    expect(change(text)).not.toBe(text);
    await expect(read(change(text))).rejects.toMatchObject({ name: 'ListFault' });
  });

  it('is refused however it is cut', async () => {
    const text = signed();
    for (let length = 0; length < text.length; length += 97) {
      await expect(read(text.slice(0, length))).rejects.toMatchObject({ name: 'ListFault' });
    }
  });
});

it('takes what stands outside the root for nothing', async () => {
  const signature = signatureOf(`${rootOpen}${listBody(list)}${rootClose}`, { signer });
  const text = `<?xml version="1.0"?>\n<!-- c -->\n${rootOpen}${listBody(list)}${signature}${rootClose}\n<!-- d -->\n`;
  expect((await read(text)).content.sequenceNumber).toBe(7);
});

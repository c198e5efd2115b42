import { expect, it } from 'vitest';
import { sha256 } from '../../crypto/hash.ts';
import { encodeBase64Url } from '../../encoding/base64.ts';
import { type CborNode, cborBytes, findCborMember, readCbor } from '../../encoding/cbor.ts';
import { type CborValue, embeddedCbor, writeCbor } from '../../encoding/cbor-writer.ts';
import { parseCertificate } from '../../trust/certificate.ts';
import { chainTimeMs, dayMs } from '../../trust/testing/chains.ts';
import { signedBytes } from './cose.ts';
import { issueMdoc } from './issue.ts';
import { judgeIssuedMdocForm, judgeMdocForm } from './parse.ts';
import {
  contentOf,
  deviceKeys,
  docType,
  documentSigner,
  elements,
  type IssuedParts,
  issue,
  issuerSigned,
  nameSpace,
  partsOf,
  presentParts,
  session,
  signP1363,
} from './testing/documents.ts';
import { type MdocExpectation, verifyMdoc } from './verify.ts';

const signer = documentSigner();
const device = deviceKeys();
const issued = await issue(signer, contentOf(signer, device.jwk));
const parts = partsOf(issued);
const expectation: MdocExpectation = { issuer: signer.issuer, docType, session, atMs: chainTimeMs };

function verdict(text: string, change: Partial<MdocExpectation> = {}): string | undefined {
  const form = judgeMdocForm(text);
  const { violations } =
    form.result === undefined ? form : verifyMdoc(form.result, { ...expectation, ...change });
  const [first] = violations;
  return first === undefined ? undefined : [first.code, first.field].filter(Boolean).join(' ');
}

/** A security object that the signer signed again after a change. */
function resigned(change: (mso: Map<string, CborValue>) => void, of: IssuedParts = parts): IssuedParts {
  const embedded = readCbor(of.payload);
  if (embedded.kind !== 'tag' || embedded.inner.kind !== 'bytes') throw new Error('no security object');
  const node = readCbor(embedded.inner.value);
  if (node.kind !== 'map') throw new Error('no map');
  const members = node.entries.map(({ key, value }): [string, CborValue] => [
    key.kind === 'text' ? key.value : '',
    { encoded: cborBytes(value) },
  ]);
  const mso = new Map(members);
  change(mso);
  const payload = writeCbor(embeddedCbor(mso));
  return {
    ...of,
    payload,
    signature: signP1363(signer.key.privateKey, signedBytes(of.protectedHeader, payload)),
  };
}

const items = parts.items.get(nameSpace) ?? [];
const withItems = (...list: readonly Uint8Array[]): IssuedParts => ({
  ...parts,
  items: new Map([[nameSpace, list]]),
});

function itemOf(tagged: Uint8Array | undefined): CborNode {
  const node = readCbor(tagged ?? new Uint8Array());
  if (node.kind !== 'tag' || node.inner.kind !== 'bytes') throw new Error('no item');
  return readCbor(node.inner.value);
}

const named = (name: string): Uint8Array => {
  const found = items.find((tagged) => {
    const identifier = findCborMember(itemOf(tagged), 'elementIdentifier');
    return identifier?.kind === 'text' && identifier.value === name;
  });
  if (found === undefined) throw new Error(`no element ${name}`);
  return found;
};

/** An item with members replaced, or its members in another order. */
function changedItem(
  tagged: Uint8Array,
  change: ReadonlyMap<string, CborValue>,
  isReversed = false,
): Uint8Array {
  const node = itemOf(tagged);
  if (node.kind !== 'map') throw new Error('no map');
  const entries = node.entries.map(({ key, value }): readonly [Uint8Array, Uint8Array] => {
    const replaced = key.kind === 'text' ? change.get(key.value) : undefined;
    return [cborBytes(key), replaced === undefined ? cborBytes(value) : writeCbor(replaced)];
  });
  const ordered = isReversed ? entries.toReversed() : entries;
  const inside = Buffer.concat([Buffer.from([0xa0 + entries.length]), ...ordered.flat()]);
  return writeCbor({ tag: 24, value: inside });
}

it('a presentation verifies', () => {
  const form = judgeMdocForm(presentParts(parts, device));
  if (form.result === undefined) throw new Error(form.violations[0].message);
  expect(form.result.issuerAuth.x5chain.map((each) => Buffer.from(each))).toEqual([signer.certificate]);
  const { violations, result } = verifyMdoc(form.result, expectation);
  expect(violations).toEqual([]);
  const { kty, crv, x, y } = device.jwk;
  expect(result).toEqual({
    docType,
    claims: { [nameSpace]: { ...elements, portrait: 'AQID' } },
    deviceKey: { kty, crv, x, y },
    status: { index: 7, uri: 'https://issuer.example/lists/1' },
    validUntilMs: chainTimeMs + dayMs,
  });
});

it('a part of the elements, or none', () => {
  const form = judgeMdocForm(presentParts(withItems(named('age_over_18')), device));
  if (form.result === undefined) throw new Error('not parsed');
  expect(verifyMdoc(form.result, expectation).result?.claims).toEqual({ [nameSpace]: { age_over_18: true } });
  expect(verdict(presentParts({ ...parts, items: new Map() }, device))).toBeUndefined();
});

it('the encoding of what is issued', () => {
  const birth = findCborMember(itemOf(named('birth_date')), 'elementValue');
  expect(birth).toMatchObject({ kind: 'tag', tag: 1004, inner: { value: '1990-02-28' } });
  expect(findCborMember(itemOf(named('portrait')), 'elementValue')).toMatchObject({ kind: 'bytes' });
  expect(findCborMember(itemOf(named('height')), 'random')).toMatchObject({ kind: 'bytes' });
  const mso = readCbor(parts.payload);
  expect(Buffer.from(writeCbor({ encoded: cborBytes(mso) })).includes('2025-05-31T12:00:00Z')).toBe(true);
  // the signature of the certificate is that of a document signer
  expect(parseCertificate(signer.certificate).key?.kind).toBe('P-256');
});

it('elements that are not what was signed', () => {
  const height = named('height');
  const other = (change: readonly (readonly [string, CborValue])[]) => changedItem(height, new Map(change));
  expect(verdict(presentParts(withItems(other([['elementValue', 182]])), device))).toBe(
    `DIGEST /${nameSpace}/height`,
  );
  expect(verdict(presentParts(withItems(other([['elementIdentifier', 'weight']])), device))).toBe(
    `DIGEST /${nameSpace}/weight`,
  );
  expect(verdict(presentParts(withItems(other([['random', Buffer.alloc(32)]])), device))).toMatch(/^DIGEST/);
  expect(verdict(presentParts(withItems(other([['digestID', 99]])), device))).toMatch(/^DIGEST/);
  // the same members in another order are other bytes
  expect(verdict(presentParts(withItems(changedItem(height, new Map(), true)), device))).toMatch(/^DIGEST/);
  // the same bytes in a longer head
  const node = readCbor(height);
  if (node.kind !== 'tag' || node.inner.kind !== 'bytes') throw new Error('no item');
  const long = Buffer.concat([Buffer.from([0xd8, 0x18, 0x59, 0, node.inner.value.length]), node.inner.value]);
  expect(verdict(presentParts(withItems(long), device))).toMatch(/^DIGEST/);
  expect(verdict(presentParts({ ...parts, items: new Map([['org.other', [height]]]) }, device))).toMatch(
    /^DIGEST/,
  );
});

it('digests and elements that occur twice', () => {
  const [first = new Uint8Array(), second = new Uint8Array()] = items;
  expect(verdict(presentParts(withItems(first, first), device))).toBe('DIGEST');
  const id = findCborMember(itemOf(first), 'digestID');
  const name = findCborMember(itemOf(first), 'elementIdentifier');
  if (id?.kind !== 'integer' || name?.kind !== 'text') throw new Error('no item');
  expect(
    verdict(presentParts(withItems(first, changedItem(second, new Map([['digestID', id.value]]))), device)),
  ).toBe('DIGEST');
  const twin = changedItem(second, new Map([['elementIdentifier', name.value]]));
  expect(verdict(presentParts(withItems(first, twin), device))).toBe('DIGEST');
  // a member twice inside an item
  const item = cborBytes(itemOf(first));
  const doubled = Buffer.concat([Buffer.from([0xa5]), item.subarray(1), writeCbor('digestID'), writeCbor(0)]);
  expect(verdict(presentParts(withItems(writeCbor({ tag: 24, value: doubled })), device))).toBe('FORMAT');
});

it('another request', () => {
  const other = (change: Partial<typeof session>) =>
    verdict(presentParts(parts, device, { session: { ...session, ...change } }));
  expect(other({})).toBeUndefined();
  expect(other({ nonce: 'another' })).toBe('KB_SIGNATURE');
  expect(other({ responseUri: 'https://other.example/response' })).toBe('KB_SIGNATURE');
  expect(other({ clientId: 'x509_san_dns:other.example' })).toBe('KB_SIGNATURE');
  const encryptionKeyThumbprint = sha256('key');
  expect(other({ encryptionKeyThumbprint })).toBe('KB_SIGNATURE');
  const encrypted = { ...session, encryptionKeyThumbprint };
  expect(
    verdict(presentParts(parts, device, { session: encrypted }), { session: encrypted }),
  ).toBeUndefined();
});

it("the device's authentication", () => {
  const code = (change: Parameters<typeof presentParts>[2], of = parts) =>
    verdict(presentParts(of, device, change));
  expect(code({ device: deviceKeys() })).toBe('KB_SIGNATURE');
  expect(code({ auth: (mac) => new Map([['deviceMac', mac]]) })).toBe('DEVICE_MAC_UNSUPPORTED');
  const both = (sign1: CborValue) =>
    new Map([
      ['deviceMac', sign1],
      ['deviceSignature', sign1],
    ]);
  expect(code({ auth: both })).toBe('DEVICE_MAC_UNSUPPORTED');
  expect(code({ auth: () => new Map() })).toBe('KB_MISSING');
  expect(code({ payload: new Uint8Array() })).toBe('FORMAT');
  expect(code({ protectedHeader: writeCbor(new Map([[1, -35]])) })).toBe('SIGNATURE');
  expect(code({ protectedHeader: new Uint8Array() })).toBe('SIGNATURE');
  const critical = new Map<number, CborValue>([
    [1, -7],
    [2, [1]],
  ]);
  expect(code({ protectedHeader: writeCbor(critical) })).toBe('FORMAT');
  expect(code({ protectedHeader: writeCbor(new Map([[1, -9]])) })).toBeUndefined();
});

it('a key of the device that is not on P-256', () => {
  const long = deviceKeys('P-384');
  const coordinate = (name: 'x' | 'y') => Buffer.from(String(long.jwk[name]), 'base64url');
  const key = (...members: readonly (readonly [number, CborValue])[]) =>
    resigned((mso) => mso.set('deviceKeyInfo', new Map([['deviceKey', new Map(members)]])));
  const bad = [
    key([1, 2], [-1, 2], [-2, coordinate('x')], [-3, coordinate('y')]),
    key([1, 2], [-1, 1], [-2, coordinate('x').subarray(0, 32)], [-3, coordinate('y').subarray(0, 32)]),
    key([1, 2], [-1, 1], [-2, Buffer.alloc(32)], [-3, true]),
    key([1, 1], [-1, 6], [-2, Buffer.alloc(32)]),
  ];
  for (const each of bad) {
    expect(verdict(presentParts(each, device))).toBe('KB_SIGNATURE deviceKey');
    // nor is such a credential stored
    expect(verdict(presentParts(each, device), { session: undefined })).toBe('KB_SIGNATURE deviceKey');
  }
});

it("the issuer's signature", () => {
  const other = documentSigner();
  expect(verdict(presentParts(parts, device), { issuer: other.issuer })).toBe('SIGNATURE');
  const moved = {
    ...parts,
    unprotectedHeader: new Map<number, CborValue>([...parts.unprotectedHeader, [1, -7]]),
  };
  expect(verdict(presentParts(moved, device))).toBe('FORMAT');
  const open = { ...moved, protectedHeader: new Uint8Array() };
  expect(verdict(presentParts(open, device))).toBe('SIGNATURE');
  const header = (value: Map<number, CborValue>) => {
    const protectedHeader = writeCbor(value);
    const signature = signP1363(signer.key.privateKey, signedBytes(protectedHeader, parts.payload));
    return verdict(presentParts({ ...parts, protectedHeader, signature }, device));
  };
  expect(header(new Map([[1, -7]]))).toBeUndefined();
  expect(header(new Map([[1, -35]]))).toBe('SIGNATURE');
  expect(header(new Map([[1, 'ES256']]))).toBe('SIGNATURE');
  expect(header(new Map())).toBe('SIGNATURE');
  expect(
    header(
      new Map<number, CborValue>([
        [1, -7],
        [2, [33]],
      ]),
    ),
  ).toBe('FORMAT');
  expect(
    header(
      new Map<number, CborValue>([
        [1, -7],
        [33, signer.certificate],
      ]),
    ),
  ).toBe('FORMAT');
  // a signature in DER
  const derSignature = Buffer.concat([Buffer.from('30440220', 'hex'), Buffer.alloc(66, 1)]);
  expect(verdict(presentParts({ ...parts, signature: derSignature }, device))).toBe('SIGNATURE');
});

it('types', () => {
  expect(verdict(presentParts(parts, device), { docType: 'org.other' })).toBe('VCT_MISMATCH docType');
  expect(verdict(presentParts(parts, device, { docType: 'org.other' }))).toBe('VCT_MISMATCH docType');
  expect(verdict(presentParts(parts, device), { docType: undefined })).toBeUndefined();
});

it('validity', () => {
  const at = (atMs: number) => verdict(presentParts(parts, device), { atMs });
  expect(at(chainTimeMs + dayMs + 59_000)).toBeUndefined();
  expect(at(chainTimeMs + dayMs + 60_000)).toBe('EXPIRED validUntil');
  expect(at(chainTimeMs - dayMs - 60_000)).toBeUndefined();
  expect(at(chainTimeMs - dayMs - 61_000)).toBe('EXPIRED validFrom');
  const { issuer } = signer;
  const earlier = { issuer: { ...issuer, notAfterMs: chainTimeMs - 2 * dayMs } };
  expect(verdict(presentParts(parts, device), earlier)).toBe('EXPIRED signed');
});

it('the security object', () => {
  const code = (change: (mso: Map<string, CborValue>) => void) =>
    verdict(presentParts(resigned(change), device));
  expect(code(() => undefined)).toBeUndefined();
  expect(code((mso) => mso.set('version', '2.0'))).toBe('FORMAT');
  expect(code((mso) => mso.set('digestAlgorithm', 'SHA-1'))).toBe('FORMAT');
  expect(code((mso) => mso.set('digestAlgorithm', 'SHA-512'))).toMatch(/^DIGEST/);
  for (const name of ['valueDigests', 'deviceKeyInfo', 'validityInfo', 'docType']) {
    expect(code((mso) => mso.delete(name))).toBe('FORMAT');
    expect(code((mso) => mso.set(name, 1))).toBe('FORMAT');
  }
  expect(code((mso) => mso.set('status', 1))).toBe('FORMAT status');
  const times = (value: CborValue) =>
    new Map<string, CborValue>([
      ['signed', value],
      ['validFrom', value],
      ['validUntil', value],
    ]);
  for (const value of [1, '2025-05-31T12:00:00Z', { tag: 1, value: 1 }, { tag: 0, value: 'yesterday' }]) {
    expect(code((mso) => mso.set('validityInfo', times(value)))).toBe('FORMAT');
  }
});

it('the response', () => {
  const code = (response: (document: CborValue) => ReadonlyMap<string, CborValue>) =>
    verdict(presentParts(parts, device, { response }));
  const members = (change: Record<string, CborValue>) => (document: CborValue) =>
    new Map<string, CborValue>(
      Object.entries({ version: '1.0', documents: [document], status: 0, ...change }),
    );
  expect(code(members({}))).toBeUndefined();
  expect(code(members({ version: '2.0' }))).toBe('FORMAT');
  expect(code(members({ status: 10 }))).toBe('FORMAT');
  expect(code(members({ documents: [] }))).toBe('FORMAT');
  expect(code((document) => members({ documents: [document, document] })(document))).toBe('FORMAT');
  expect(code(() => new Map())).toBe('FORMAT');
  for (const text of ['', 'a', 'oA==', '!', 'oA', 'AQ', `${presentParts(parts, device)}AA`]) {
    expect(verdict(text)).toBe('FORMAT');
  }
});

it('an issued mdoc is judged before it is stored', () => {
  const form = judgeIssuedMdocForm(issued);
  if (form.result === undefined) throw new Error('not parsed');
  const { violations } = verifyMdoc(form.result, { ...expectation, session: undefined });
  expect(violations).toEqual([]);
  expect(verifyMdoc(form.result, expectation).violations.map(({ code }) => code)).toEqual(['KB_MISSING']);
  expect(
    judgeIssuedMdocForm(encodeBase64Url(writeCbor(issuerSigned({ ...parts, payload: new Uint8Array() }))))
      .violations[0]?.code,
  ).toBe('FORMAT');
});

it('what cannot be issued', async () => {
  const content = contentOf(signer, device.jwk);
  const outside = {
    random: (size: number) => new Uint8Array(size),
    sign: () => Promise.resolve(new Uint8Array(64)),
  };
  const refusal = expect.objectContaining({ code: 'INVALID_MDOC' });
  const bad = [
    { docType: '' },
    { certificates: [] },
    { nameSpaces: {} },
    { nameSpaces: { [nameSpace]: {} } },
    { nameSpaces: { [nameSpace]: { portrait: 'not base64!' } } },
    { nameSpaces: { [nameSpace]: { family_name: undefined } } },
    { deviceKey: deviceKeys('P-384').jwk },
    { deviceKey: device.privateJwk },
    { validUntilMs: content.validFromMs },
  ];
  for (const change of bad)
    await expect(issueMdoc({ ...content, ...change }, outside)).rejects.toThrow(refusal);
  const short = { ...outside, sign: () => Promise.resolve(new Uint8Array(70)) };
  await expect(issueMdoc(content, short)).rejects.toThrow(refusal);
  await expect(issueMdoc(content, outside)).resolves.toMatch(/^[A-Za-z0-9_-]+$/);
});

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseCertificate } from './certificate.ts';
import { revocationListAddresses } from './distribution-points.ts';
import { judgeRevocation, verifyRevocationList } from './revocation-list.ts';
import {
  ALGORITHM,
  basicConstraints,
  chain,
  chainDers,
  chainTimeMs,
  dayMs,
  ecKey,
  edKey,
  extension,
  keyUsage,
  uriName,
} from './testing/chains.ts';
import { der, distinguishedName, octets, sequence } from './testing/der-writer.ts';
import {
  distributionPoint,
  distributionPoints,
  issuingPoint,
  type ListSpec,
  listDer,
} from './testing/revocation.ts';

const address = 'http://lists.example/1.crl';
const [leafKey, issuerKey] = [ecKey('P-256'), ecKey('P-256')];
const point = distributionPoints(distributionPoint([address]));
const { path, anchor } = chain('lists', [leafKey, issuerKey], {
  0: { extensions: [basicConstraints(false), keyUsage(0), point] },
});
const [leaf = anchor] = path;
const issuer = anchor.subject;
const own = { issuer, signer: issuerKey };

const verify = (change: Partial<ListSpec> = {}, atMs = chainTimeMs, authority = anchor) =>
  verifyRevocationList(listDer({ ...own, ...change }), { issuer: authority, atMs });
const refusalOf = (...input: Parameters<typeof verify>) => {
  const [found] = verify(...input).violations;
  if (found !== undefined) expect(found.code).toBe('TRUST_CRL_UNAVAILABLE');
  return found?.message.replace('The list of revoked certificates ', '');
};
const verdictOf = (change: Partial<ListSpec> = {}, certificate = leaf) => {
  const { result, violations } = verify(change);
  if (result === undefined) throw new Error(violations[0].message);
  return judgeRevocation(result, certificate);
};

it('certificates are revoked by their serial number, for any reason', () => {
  expect(verdictOf()).toBe('Good');
  expect(verdictOf({ entries: [{ serial: 2 }, { serial: 0x0100 }] })).toBe('Good');
  expect(verdictOf({ entries: [{ serial: 7 }, { serial: 1 }] })).toBe('Revoked');
  const hold = extension('2.5.29.21', der(0x0a, Buffer.from([6])));
  expect(verdictOf({ entries: [{ serial: 1, extensions: [hold] }] })).toBe('Revoked');
  expect(verdictOf({ version: null, entries: [{ serial: 1 }] })).toBe('Revoked');
});

it('a list is current from its update to the next one', () => {
  const nextUpdateMs = chainTimeMs + dayMs;
  expect(refusalOf({ nextUpdateMs }, nextUpdateMs + 999)).toBeUndefined();
  expect(refusalOf({ nextUpdateMs }, nextUpdateMs + 1_000)).toBe('has expired');
  expect(refusalOf({ nextUpdateMs: null })).toBe('has no next update');
  expect(refusalOf({ thisUpdateMs: chainTimeMs + 30_000 })).toBeUndefined();
  expect(refusalOf({ thisUpdateMs: chainTimeMs + 61_000 })).toBe('is of a later time');
});

it('a list is signed by the issuer, whose key may sign lists', () => {
  expect(refusalOf({ issuer: distinguishedName('another') })).toBe('is of another issuer');
  expect(refusalOf({ signer: leafKey })).toBe('is not signed by the issuer of the certificate');
  expect(refusalOf({ algorithm: ALGORITHM.ecdsaSha1 })).toBe(
    'is signed with an algorithm that is not accepted',
  );
  expect(refusalOf({ algorithm: ALGORITHM.ed25519, signer: edKey() })).toContain('algorithm');
  const authority = (...usages: readonly number[]) =>
    chain('lists', [leafKey, issuerKey], {
      1: { extensions: [basicConstraints(true), ...(usages.length === 0 ? [] : [keyUsage(...usages)])] },
    }).anchor;
  expect(refusalOf({}, chainTimeMs, authority(5))).toBe('is signed with a key that may sign no lists');
  expect(refusalOf({}, chainTimeMs, authority(6))).toBeUndefined();
  expect(refusalOf({}, chainTimeMs, authority())).toBeUndefined();
});

it('lists of changes, indirect lists and unknown critical extensions are refused', () => {
  const odd = (isCritical: boolean) => extension('1.3.6.1.4.1.99999.7', Buffer.from([5, 0]), isCritical);
  const number = extension('2.5.29.20', Buffer.from([2, 1, 9]));
  expect(refusalOf({ extensions: [number, odd(false)] })).toBeUndefined();
  expect(refusalOf({ extensions: [odd(true)] })).toContain('1.3.6.1.4.1.99999.7');
  expect(refusalOf({ extensions: [extension('2.5.29.27', Buffer.from([2, 1, 1]), true)] })).toBe(
    'is one of changes only',
  );
  expect(refusalOf({ extensions: [number, number] })).toContain('occurs twice');
  expect(refusalOf({ version: null, extensions: [number] })).toBe('has other members');
  expect(refusalOf({ version: 3 })).toBe('is of another version than 2');
  const entry = (...extensions: readonly Buffer[]) => refusalOf({ entries: [{ serial: 9, extensions }] });
  expect(entry(odd(false))).toBeUndefined();
  expect(entry(odd(true))).toContain('1.3.6.1.4.1.99999.7');
  expect(entry(extension('2.5.29.29', sequence(der(0xa4, distinguishedName('other'))), true))).toBe(
    'is indirect',
  );
  expect(entry()).toBeUndefined();
});

it('a list is about the certificates that it names', () => {
  const yes = Buffer.from([0xff]);
  const name = (...addresses: readonly string[]) => der(0xa0, der(0xa0, ...addresses.map(uriName)));
  const scoped = (...members: readonly Buffer[]) => ({
    extensions: [issuingPoint(...members)],
    entries: [{ serial: 1 }],
  });
  const [onlyLeaves, onlyAuthorities] = [der(0x81, yes), der(0x82, yes)];
  expect(verdictOf(scoped(onlyLeaves))).toBe('Revoked');
  expect(verdictOf(scoped(onlyAuthorities))).toBe('Unavailable');
  expect(verdictOf({ ...scoped(onlyLeaves), entries: [{ serial: 2 }] }, anchor)).toBe('Unavailable');
  expect(verdictOf({ ...scoped(onlyAuthorities), entries: [{ serial: 2 }] }, anchor)).toBe('Revoked');
  expect(verdictOf(scoped(name('http://other.example/', address), onlyLeaves))).toBe('Revoked');
  expect(verdictOf(scoped(name('http://lists.example/2.crl')))).toBe('Unavailable');
  expect(verdictOf(scoped())).toBe('Revoked');
  const refused = 'is indirect, or about some reasons or attributes only';
  expect(refusalOf(scoped(der(0x83, Buffer.from([1, 0x40]))))).toBe(refused);
  expect(refusalOf(scoped(der(0x84, yes)))).toBe(refused);
  expect(refusalOf(scoped(der(0x85, yes)))).toBe(refused);
  expect(refusalOf(scoped(onlyLeaves, onlyAuthorities))).toBe(refused);
  expect(refusalOf(scoped(der(0x81, Buffer.from([0]))))).toBe(refused);
  expect(refusalOf(scoped(der(0xa0, der(0xa1))))).toContain('relative to its issuer');
});

it('addresses of lists that say all about a certificate', () => {
  const addressesOf = (...points: readonly Buffer[]) => {
    const extensions = [basicConstraints(false), distributionPoints(...points)];
    const [first = Buffer.of()] = chainDers('points', [leafKey, issuerKey], { 0: { extensions } });
    return revocationListAddresses(parseCertificate(first));
  };
  const other = 'https://lists.example/2.crl';
  expect(addressesOf(distributionPoint([address, 'ldap://lists.example/cn=1', other]))).toEqual([
    address,
    other,
  ]);
  expect(addressesOf(distributionPoint([address]), distributionPoint([other, address]))).toEqual([
    address,
    other,
  ]);
  const [reasons, signer] = [der(0x81, Buffer.from([1, 0x40])), der(0xa2, der(0xa4, distinguishedName('x')))];
  expect(addressesOf(distributionPoint([address], reasons), distributionPoint([other], signer))).toEqual([]);
  expect(addressesOf(sequence(der(0xa2, der(0xa4, distinguishedName('x')))))).toEqual([]);
  expect(addressesOf(distributionPoint(['http://lists.example/ x', 'file:///etc/passwd', '']))).toEqual([]);
  expect(revocationListAddresses(anchor)).toEqual([]);
  expect(() => addressesOf(octets(Buffer.of()))).toThrow(expect.objectContaining({ code: 'DER_MALFORMED' }));
});

it('a list of 4 MiB is read in time that grows as it does', () => {
  const entries = Array.from({ length: 170_000 }, (_, index) => ({ serial: 0x1_0000 + index }));
  const bytes = listDer({ ...own, entries: [...entries, { serial: 1 }] });
  expect(bytes.length).toBeGreaterThan(3_400_000);
  const { result } = verifyRevocationList(bytes, { issuer: anchor, atMs: chainTimeMs });
  expect(result?.revoked.size).toBe(170_001);
  expect(result && judgeRevocation(result, leaf)).toBe('Revoked');
});

it('what is not signed is bounded before it is read', () => {
  const context = { issuer: anchor, atMs: chainTimeMs };
  const many = Buffer.alloc(4_000_000, Buffer.from([5, 0]));
  const refusal = (bytes: Buffer) => verifyRevocationList(bytes, context).violations[0]?.message;
  expect(refusal(sequence(many))).toContain('too many members');
  const { identifier } = ALGORITHM.ecdsaSha256;
  expect(refusal(sequence(sequence(many), identifier, der(0x03, Buffer.of(0))))).toContain(
    'too many members',
  );
  const long = { hash: 'sha256', identifier: sequence(many) };
  expect(refusalOf({ algorithm: long })).toBe('is signed with an algorithm that is not accepted');
});

it('one changed byte of a list is refused wherever it is, and nothing but a refusal comes of any bytes', () => {
  const bytes = listDer({ ...own, entries: [{ serial: 1 }], extensions: [issuingPoint()] });
  const context = { issuer: anchor, atMs: chainTimeMs };
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
    expect([at, verifyRevocationList(changed, context).violations.length]).toEqual([at, 1]);
    expect(verifyRevocationList(bytes.subarray(0, at), context).violations).toHaveLength(1);
  }
  expect(verifyRevocationList(Buffer.concat([bytes, Buffer.of(0)]), context).violations).toHaveLength(1);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (any) => {
      expect(verifyRevocationList(any, context).violations).toHaveLength(1);
    }),
  );
});

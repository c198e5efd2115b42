import { randomInt, X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { encodeHex } from '#core/encoding/hex.ts';
import { type Certificate, findCertificate, isSelfSigned } from '#core/trust/certificate.ts';
import { allowsKeyUsage, basicConstraintsOf, KEY_USAGE, namesPurpose } from '#core/trust/extensions.ts';
import { judgeUnanchoredPath } from '#core/trust/unanchored.ts';
import { makeCa, makeCertificate, type TestCertificate, usages } from '../issuing/ca.fixture.ts';
import { buildPath } from './build-path.ts';

const nowMs = Date.now();
const dayMs = 86_400_000;

function parsed({ der }: { readonly der: Uint8Array }): Certificate {
  const certificate = findCertificate(der);
  if (certificate === undefined) throw new Error('no certificate');
  return certificate;
}

const judge = (...path: readonly TestCertificate[]) =>
  judgeUnanchoredPath(path.map(parsed), nowMs).map(
    ({ code, index, message }) =>
      `${code === 'TRUST_CERT_EXPIRED' ? 'EXPIRED' : 'INVALID'} ${index} ${message}`,
  );
const leafOf = (issuer: TestCertificate, more: object = {}) =>
  makeCertificate({ name: 'CN=leaf', issuer, usages: usages.digitalSignature, ...more });

let root: TestCertificate;
let middle: TestCertificate;
beforeAll(async () => {
  root = await makeCa('CN=root');
  middle = await makeCa('CN=middle', { issuer: root, pathLength: 0 });
});

describe('a path', () => {
  it('is valid up to a root, up to an intermediate, and alone', async () => {
    const leaf = await leafOf(middle);
    expect(judge(leaf, middle, root)).toEqual([]);
    expect(judge(leaf, middle)).toEqual([]);
    expect(judge(leaf)).toEqual([]);
  });

  it.each(['P-384', 'RSA-2048', 'RSA-PSS'] as const)('may be signed by %s', async (key) => {
    const ca = await makeCa('CN=other', { key });
    expect(judge(await leafOf(ca), ca)).toEqual([]);
  });

  it.each(['SHA-384', 'SHA-512'] as const)('may be signed with %s', async (hash) => {
    const [ca, rsa] = [await makeCa('CN=ec', { hash }), await makeCa('CN=rsa', { hash, key: 'RSA-2048' })];
    for (const issuer of [ca, rsa]) expect(judge(await leafOf(issuer, { hash }), issuer)).toEqual([]);
  });

  it.each(['P-521', 'RSA-1024', 'RSA-3', 'Ed25519'] as const)('may not be signed by %s', async (key) => {
    const ca = await makeCa('CN=other', { key });
    expect(judge(await leafOf(ca), ca).join()).toContain('1 has a key that is not accepted');
  });

  it('may not be signed with SHA-1', async () => {
    const ca = await makeCa('CN=other', { key: 'RSA-2048' });
    const weak = await leafOf({ ...ca, keys: await sha1Keys(ca) }, { hash: 'SHA-1' });
    expect(judge(weak, ca)).toEqual([
      'INVALID 0 is signed with an algorithm that is not accepted; ECDSA or RSA with SHA-256 or better is',
    ]);
  });

  it.each([
    ['no basic constraints', { isAuthority: undefined }, 'is no CA'],
    ['cA false', { isAuthority: false }, 'is no CA'],
    ['no keyCertSign', { usages: usages.digitalSignature }, 'may not sign certificates by its key usage'],
  ])('with an issuer that has %s is refused', async (_what, more, message) => {
    const { isAuthority, ...rest } = { isAuthority: true, ...more };
    const issuer = await makeCertificate({
      name: 'CN=bad',
      issuer: root,
      usages: usages.keyCertSign,
      ...(isAuthority !== undefined && { isAuthority }),
      ...rest,
    });
    expect(judge(await leafOf(issuer), issuer, root)).toEqual([`INVALID 1 ${message}`]);
  });

  it('is no longer than a CA above allows; a CA that follows itself does not count', async () => {
    const below = await makeCa('CN=below', { issuer: middle });
    expect(judge(await leafOf(below), below, middle, root)).toEqual([
      'INVALID 2 allows 0 CAs below it, and the path has 1',
    ]);
    const again = await makeCa('CN=middle', { issuer: middle });
    expect(judge(await leafOf(again), again, middle, root)).toEqual([]);
  });

  it('has at most five certificates', async () => {
    const path = [root];
    for (let depth = 0; depth < 4; depth += 1) {
      const [issuer = root] = path;
      path.unshift(await makeCa(`CN=ca${depth}`, { issuer }));
    }
    expect(judge(...path)).toEqual([]);
    const [last = root] = path;
    expect(judge(await leafOf(last), ...path).join()).toContain('at most 5 are accepted');
    expect(judgeUnanchoredPath([], nowMs)).toHaveLength(1);
  });

  it('is refused where a name, a signature or a root does not fit', async () => {
    const twin = await makeCa('CN=middle', { issuer: root });
    const leaf = await leafOf(middle);
    expect(judge(leaf, twin, root)).toEqual(['INVALID 0 is not signed by the next certificate']);
    const named = await leafOf(middle, { issuerName: 'CN=else' });
    expect(judge(named, middle, root)).toEqual(['INVALID 0 names another issuer than the next certificate']);
    const forged = await makeCertificate({
      name: 'CN=root',
      issuer: middle,
      issuerName: 'CN=root',
      isAuthority: true,
    });
    expect(judge(forged)).toEqual(['INVALID 0 names itself as its issuer and is not signed by itself']);
    expect([isSelfSigned(parsed(forged)), isSelfSigned(parsed(root))]).toEqual([false, true]);
  });

  it('is judged at a time, each certificate for itself, the last second included', async () => {
    const old = await makeCa('CN=old', { issuer: root, toMs: nowMs - dayMs });
    const early = await leafOf(old, { fromMs: nowMs + dayMs });
    expect(judge(early, old, root)).toEqual([
      expect.stringMatching(/^EXPIRED 0 is not valid before /),
      expect.stringMatching(/^EXPIRED 1 expired at /),
    ]);
    const end = Math.floor(nowMs / 1_000) * 1_000;
    const leaf = parsed(await leafOf(root, { toMs: end }));
    expect(judgeUnanchoredPath([leaf], end + 999)).toEqual([]);
    expect(judgeUnanchoredPath([leaf], end + 1_000)).toHaveLength(1);
    expect(judgeUnanchoredPath([leaf], leaf.notBeforeMs)).toEqual([]);
    expect(judgeUnanchoredPath([leaf], leaf.notBeforeMs - 1)).toHaveLength(1);
  });

  it('is refused with name constraints and with critical extensions that are unknown', async () => {
    const value = Buffer.from('3000', 'hex');
    const constrained = await makeCa('CN=nc', {
      issuer: root,
      extra: [{ oid: '2.5.29.30', critical: false, value }],
    });
    expect(judge(await leafOf(constrained), constrained, root)).toEqual([
      expect.stringMatching(/^INVALID 1 has name constraints/),
    ]);
    for (const oid of ['2.5.29.36', '1.3.6.1.4.1.99999.1']) {
      const strange = await leafOf(root, { extra: [{ oid, critical: true, value }] });
      expect(judge(strange, root)).toEqual([
        `INVALID 0 has the critical extension ${oid}, which is not supported`,
      ]);
      expect(judge(await leafOf(root, { extra: [{ oid, critical: false, value }] }), root)).toEqual([]);
    }
  });
});

/** The private key of an RSA CA for signatures with SHA-1. */
async function sha1Keys({ keys }: TestCertificate): Promise<TestCertificate['keys']> {
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-1' };
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  const privateKey = await crypto.subtle.importKey('pkcs8', pkcs8, algorithm, true, ['sign']);
  return { ...keys, privateKey };
}

describe('the order of an upload', () => {
  const thumbprints = (path: readonly Certificate[]) => path.map(({ thumbprint }) => thumbprint);
  const orderOf = (leaf: TestCertificate, ...given: readonly TestCertificate[]) => {
    const built = buildPath(parsed(leaf), given.map(parsed));
    return 'path' in built ? thumbprints(built.path) : built.message;
  };

  it('follows the issuers, whatever is repeated, and whether leaf and root are among them', async () => {
    const leaf = await leafOf(middle);
    const whole = thumbprints([leaf, middle, root].map(parsed));
    expect(orderOf(leaf, root, middle)).toEqual(whole);
    expect(orderOf(leaf, middle, root, leaf, middle)).toEqual(whole);
    expect(orderOf(leaf, middle)).toEqual(whole.slice(0, 2));
    expect(orderOf(leaf)).toEqual(whole.slice(0, 1));
  });

  it('refuses what is not part of it, a gap, and two issuers of one certificate', async () => {
    const leaf = await leafOf(middle);
    const stranger = await makeCa('CN=stranger');
    expect(orderOf(leaf, middle, stranger)).toContain('not part of the chain');
    expect(orderOf(leaf, root)).toContain('not part of the chain');
    const cross = await makeCa('CN=middle', { issuer: stranger, keys: middle.keys });
    expect(orderOf(leaf, middle, cross)).toContain('could have issued the same one');
    const many = await Promise.all(Array.from({ length: 5 }, (_, index) => makeCa(`CN=${index}`)));
    expect(orderOf(leaf, ...many)).toContain('more than 5');
  });
});

describe('the DER of a certificate', () => {
  it('is read as OpenSSL reads it', async () => {
    const leaf = await leafOf(middle, { extendedUsages: ['1.3.6.1.5.5.7.3.4', '2.5.29.37.0'] });
    for (const each of [leaf, middle, root]) {
      const [own, openSsl] = [parsed(each), new X509Certificate(each.der)];
      expect({
        isAuthority: basicConstraintsOf(own).isAuthority,
        notBeforeMs: own.notBeforeMs,
        notAfterMs: own.notAfterMs,
        serialNumber: encodeHex(own.serial),
        thumbprint: own.thumbprint,
      }).toEqual({
        isAuthority: openSsl.ca,
        notBeforeMs: openSsl.validFromDate.getTime(),
        notAfterMs: openSsl.validToDate.getTime(),
        serialNumber: openSsl.serialNumber.toLowerCase(),
        thumbprint: openSsl.fingerprint256.replaceAll(':', '').toLowerCase(),
      });
      for (const purpose of openSsl.keyUsage ?? []) expect(namesPurpose(own, purpose)).toBe(true);
      expect(namesPurpose(own, '1.3.6.1.5.5.7.3.1') === undefined).toBe(openSsl.keyUsage === undefined);
      expect(openSsl.publicKey.export({ format: 'der', type: 'spki' })).toEqual(Buffer.from(own.spki));
    }
    const usagesOf = (each: TestCertificate) =>
      Object.values(KEY_USAGE).map((bit) => allowsKeyUsage(parsed(each), bit));
    expect([usagesOf(leaf), usagesOf(middle)]).toEqual([
      [true, false, false],
      [false, true, true],
    ]);
    expect(basicConstraintsOf(parsed(middle)).pathLength).toBe(0);
    expect(basicConstraintsOf(parsed(root)).pathLength).toBeUndefined();
  });

  it('with any byte changed, removed or added is another certificate or none, and never an exception', async () => {
    const { der } = await leafOf(middle);
    const original = findCertificate(der);
    for (let index = 0; index < der.length; index += 1) {
      expect(findCertificate(der.subarray(0, index))).toBeUndefined();
      const changed = Buffer.from(der);
      changed[index] = (changed[index] ?? 0) ^ (1 << randomInt(8));
      expect(findCertificate(changed)?.thumbprint).not.toBe(original?.thumbprint);
    }
    expect(findCertificate(Buffer.concat([der, Buffer.from([0])]))).toBeUndefined();
    expect(findCertificate(Buffer.from('30820000', 'hex'))).toBeUndefined();
    expect(findCertificate(Buffer.from('-----BEGIN CERTIFICATE-----'))).toBeUndefined();
  });

  it('has each extension once, and a serial number that is positive and short', async () => {
    const value = Buffer.from('3000', 'hex');
    const twice = { oid: '1.3.6.1.4.1.99999.1', critical: false, value };
    const repeated = await leafOf(root, { extra: [twice, twice] });
    expect(findCertificate(repeated.der)).toBeUndefined();
    const { der } = await leafOf(root);
    const at = der.indexOf(Buffer.from('021040', 'hex')) + 2;
    expect(at).toBeGreaterThan(2);
    const negative = Buffer.from(der);
    negative[at] = 0xc0;
    const zero = Buffer.from(der).fill(0, at, at + 16);
    expect(findCertificate(zero)).toBeUndefined();
    expect(judgeUnanchoredPath([parsed({ der: negative })], nowMs).map(({ message }) => message)).toEqual([
      'has a serial number that is not positive, or longer than 20 bytes',
    ]);
  });
});

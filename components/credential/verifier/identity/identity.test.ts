import { spawnSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  altNames,
  basicConstraints,
  chainDers,
  dnsName,
  ecKey,
  keyUsage,
} from '#core/trust/testing/chains.ts';
import { pem } from '#core/trust/testing/openssl.ts';
import { readAuthorities } from './authorities.ts';
import { readIdentity, verifiersOf } from './identity.ts';
import { VerifierFile } from './load.ts';
import { selfSignedBundle } from './self-signed.ts';

const nowMs = Date.UTC(2026, 10, 27);
const rules = { host: 'verifier.test', mayBeSelfSigned: true, nowMs };
const damaged = '-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n';
const noBase64 = '-----BEGIN CERTIFICATE-----\nM=A=\n-----END CERTIFICATE-----\n';

let bundle: string;
let folder: string;
beforeAll(async () => {
  bundle = await selfSignedBundle('verifier.test', nowMs);
  folder = mkdtempSync(join(tmpdir(), 'chancery-identity-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

it('a bundle of key and certificate, in either order', () => {
  const at = bundle.indexOf('-----BEGIN CERTIFICATE-----');
  const turned = bundle.slice(at) + bundle.slice(0, at);
  for (const text of [bundle, turned]) expect(readIdentity(Buffer.from(text), rules).x5c).toHaveLength(1);
});

it('a bundle that cannot be read is refused by the name of its setting', () => {
  for (const [text, message] of [
    ['', 'the bundle has no certificate'],
    [`${bundle}${damaged}`, 'a certificate of the bundle cannot be read'],
    [`${bundle}${noBase64}`, 'a certificate of the bundle cannot be read'],
    [bundle.slice(bundle.indexOf('-----BEGIN CERTIFICATE-----')), 'the bundle has no private key'],
  ] as const) {
    expect(() => readIdentity(Buffer.from(text), rules), message).toThrow(
      `Haip__VerifierCertificate: ${message}`,
    );
  }
});

it('authorities of attesters are certificates, all of which can be read', () => {
  const path = join(folder, 'authorities.pem');
  const read = (text: string) => {
    writeFileSync(path, text);
    return readAuthorities('Setting', path).length;
  };
  expect(read(`${bundle}${bundle}`)).toBe(2);
  expect(() => read('')).toThrow('the file has no certificate');
  expect(() => read(`${bundle}${damaged}`)).toThrow('certificate 2 of the file cannot be read');
  expect(() => readAuthorities('Setting', join(folder, 'absent'))).toThrow('does not exist');
});

const hasOpenssl = spawnSync('openssl', ['version'], { encoding: 'utf8' }).stdout?.startsWith('OpenSSL 3');

describe.skipIf(!hasOpenssl)('PFX files of OpenSSL (skipped without openssl)', () => {
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  const pfx = (...options: readonly string[]) => pfxOf(bundle, ...options);
  function pfxOf(text: string, ...options: readonly string[]): Buffer {
    write('bundle.pem', text);
    const base = ['pkcs12', '-export', '-in', 'bundle.pem', '-out', 'bundle.pfx', ...options];
    const { status, stderr } = spawnSync('openssl', base, { cwd: folder, encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return readFileSync(join(folder, 'bundle.pfx'));
  }
  const secret = ['-passout', 'pass:secret'];

  it.each([
    ['AES-256 by default', []],
    ['AES-128', ['-keypbe', 'AES-128-CBC', '-certpbe', 'AES-128-CBC']],
    ['plain certificates', ['-certpbe', 'NONE']],
    ['a plain key', ['-keypbe', 'NONE']],
  ])('are the same identity as their PEM: %s', (_what, options) => {
    const expected = readIdentity(Buffer.from(bundle), rules);
    const found = readIdentity(pfx(...secret, ...options), { ...rules, password: 'secret' });
    expect([found.x5c, found.clientId('x509_hash')]).toEqual([expected.x5c, expected.clientId('x509_hash')]);
    expect(found.sign('test', {}).split('.')).toHaveLength(3);
  });

  it('have the chain in any order; what is not part of it is left out', () => {
    const [leafKey, middleKey, rootKey] = [ecKey('P-256'), ecKey('P-256'), ecKey('P-256')];
    const times = { notBeforeMs: nowMs - 1_000, notAfterMs: nowMs + 86_400_000 };
    const host = [basicConstraints(false), keyUsage(0), altNames(dnsName('verifier.test'))];
    const changes = { 0: { ...times, extensions: host }, 1: times, 2: times };
    const [leaf, middle, root] = chainDers('verifier', [leafKey, middleKey, rootKey], changes).map(pem);
    const key = String(leafKey.privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const other = bundle.slice(bundle.indexOf('-----BEGIN CERTIFICATE-----'));
    const made = pfxOf(`${key}${root}${other}${middle}${leaf}`, ...secret);
    const { x5c } = readIdentity(made, { ...rules, mayBeSelfSigned: false, password: 'secret' });
    const expected = readIdentity(Buffer.from(`${key}${leaf}${middle}`), rules);
    expect(x5c).toEqual(expected.x5c);
    expect(x5c).toHaveLength(2);
  });

  it('may have no password', () => {
    expect(readIdentity(pfx('-passout', 'pass:'), rules).x5c).toHaveLength(1);
  });

  it('with another password, damaged, cut off, outdated or without a key are refused', () => {
    const good = pfx(...secret);
    const damaged = Buffer.from(good);
    const middle = damaged.length >> 1;
    damaged[middle] = (damaged[middle] ?? 0) ^ 1;
    const cases = [
      [good, 'other', 'it is damaged, or has another password'],
      [good, undefined, 'it is damaged, or has another password'],
      [damaged, 'secret', 'it is damaged, or has another password'],
      [good.subarray(0, -1), 'secret', 'it is damaged, or has another password'],
      [pfx(...secret, '-nokeys'), 'secret', 'it holds no key, or several'],
      [pfx(...secret, '-certpbe', 'PBE-SHA1-3DES'), 'secret', 'encrypted in an outdated way'],
    ] as const;
    for (const [bytes, password, message] of cases)
      expect(() => readIdentity(bytes, { ...rules, password }), message).toThrow(message);
  });

  it('a key in PEM may have a password too', () => {
    const at = bundle.indexOf('-----BEGIN CERTIFICATE-----');
    const cipher = { cipher: 'aes-256-cbc', passphrase: 'secret', format: 'pem', type: 'pkcs8' } as const;
    const locked = Buffer.from(`${createPrivateKey(bundle).export(cipher)}${bundle.slice(at)}`);
    expect(readIdentity(locked, { ...rules, password: 'secret' }).x5c).toHaveLength(1);
    for (const password of [undefined, 'other'])
      expect(() => readIdentity(locked, { ...rules, password })).toThrow('no private key that can be read');
  });
});

it('a file that changes gives its new identity, and the one before it; a damaged one changes nothing', async () => {
  const path = join(folder, 'changing.pem');
  const hashOf = (text: string) => readIdentity(Buffer.from(text), rules).clientId('x509_hash');
  const second = await selfSignedBundle('verifier.test', nowMs);
  writeFileSync(path, bundle);
  const opened = new VerifierFile({ ...rules, path, password: undefined, nowMs: () => nowMs });
  const known = () => opened.identities().map((each) => each.clientId('x509_hash'));
  expect(known()).toEqual([hashOf(bundle)]);
  opened.reload();
  expect(known()).toHaveLength(1);
  writeFileSync(path, second);
  opened.reload();
  expect(known()).toEqual([hashOf(second), hashOf(bundle)]);
  writeFileSync(path, damaged);
  expect(() => opened.reload()).toThrow('Haip__VerifierCertificate');
  expect(known()).toEqual([hashOf(second), hashOf(bundle)]);
  const verifiers = verifiersOf(() => opened.identities());
  expect(verifiers.current().clientId('x509_hash')).toBe(hashOf(second));
  expect(verifiers.find(hashOf(bundle))?.clientId('x509_hash')).toBe(hashOf(bundle));
  expect(verifiers.find('x509_san_dns:verifier.test')).toBe(verifiers.current());
  expect(verifiers.find('x509_hash:other')).toBeUndefined();
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readAuthorities } from './authorities.ts';
import { readIdentity } from './identity.ts';
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
  for (const pem of [bundle, turned]) expect(readIdentity(pem, rules).x5c).toHaveLength(1);
});

it('a bundle that cannot be read is refused by the name of its setting', () => {
  for (const [pem, message] of [
    ['', 'the bundle has no certificate'],
    [`${bundle}${damaged}`, 'a certificate of the bundle cannot be read'],
    [`${bundle}${noBase64}`, 'a certificate of the bundle cannot be read'],
    [bundle.slice(bundle.indexOf('-----BEGIN CERTIFICATE-----')), 'the bundle has no private key'],
  ] as const) {
    expect(() => readIdentity(pem, rules), message).toThrow(`Haip__VerifierCertificate: ${message}`);
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

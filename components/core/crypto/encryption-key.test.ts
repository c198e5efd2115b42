import { type createPublicKey, generateKeyPairSync } from 'node:crypto';
import { expect, it } from 'vitest';
import { encodeBase64, encodeBase64Url } from '../encoding/base64.ts';
import { normaliseEncryptionKey } from './encryption-key.ts';

const spki = (key: ReturnType<typeof createPublicKey>) => key.export({ format: 'der', type: 'spki' });

it('spells keys of each algorithm in one way', () => {
  const raw = spki(generateKeyPairSync('x25519').publicKey).subarray(-32);
  expect(normaliseEncryptionKey('X25519', encodeBase64Url(raw))).toBe(encodeBase64(raw));
  const p256 = spki(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey);
  expect(normaliseEncryptionKey('NISTP256', encodeBase64Url(p256))).toBe(encodeBase64(p256));
});

it.each([
  ['zero', '00'.repeat(32)],
  ['one', `01${'00'.repeat(31)}`],
  ['a point of order 8', 'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800'],
  ['31 bytes', '02'.repeat(31)],
])('refuses %s as an X25519 key', (_what, hex) => {
  expect(() => normaliseEncryptionKey('X25519', encodeBase64(Buffer.from(hex, 'hex')))).toThrow(/X25519/);
});

it('refuses a point beside the curve, other curves, and texts that are no base64', () => {
  const p256 = Buffer.from(spki(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey));
  p256[90] = (p256[90] ?? 0) ^ 1;
  expect(() => normaliseEncryptionKey('NISTP256', encodeBase64(p256))).toThrow(/NISTP256/);
  const p384 = spki(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey);
  expect(() => normaliseEncryptionKey('NISTP256', encodeBase64(p384))).toThrow(/NISTP256/);
  expect(() => normaliseEncryptionKey('X25519', '!')).toThrow(/base64/);
});

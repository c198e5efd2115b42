import {
  createCipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  randomBytes,
} from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { concatKdf, unwrapAgreedKey } from '#core/crypto/key-wrap.ts';
import { ephemeralKeyObject, privateKeyObject } from './key-objects.ts';

/** RFC 7518, appendix C. */
const ALICE = {
  kty: 'EC',
  crv: 'P-256',
  x: 'gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0',
  y: 'SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps',
  d: '0_NxaRPUMQoAJt50Gz8YiTr8gRTwyEaCumd-MToTmIo',
};
const BOB = {
  kty: 'EC',
  crv: 'P-256',
  x: 'weNJy2HscCSM6AEDTDg04biOvhFhyyWvOHQfeF_PxMQ',
  y: 'e8lnCO-AlStT-NJVX-crhB7QRYhiix03illJOVAOyck',
  d: 'VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw',
};
const parties = { apu: Buffer.from('Alice'), apv: Buffer.from('Bob') };
const privateKeyOf = (key: typeof ALICE) => createPrivateKey({ key, format: 'jwk' });
const bytesOf = (text: string) => Buffer.from(text, 'base64url');

test('RFC 7518, appendix C: both parties derive the same key', () => {
  const { x, y } = BOB;
  const agreed = [
    { privateKey: privateKeyOf(ALICE), publicKey: ephemeralKeyObject('P-256', bytesOf(x), bytesOf(y)) },
    { privateKey: privateKeyOf(BOB), publicKey: createPublicKey(privateKeyOf(ALICE)) },
  ];
  for (const pair of agreed) {
    const derived = concatKdf(diffieHellman(pair), { algorithm: 'A128GCM', bits: 128, ...parties });
    expect(derived.toString('base64url')).toBe('VqqN6vgjbSBcIijNcacQGg');
  }
});

const hexBytes = z.string().transform((text) => Buffer.from(text, 'hex'));
const cases = z.array(z.tuple([z.int(), hexBytes, hexBytes, hexBytes]));
const wycheproof = z
  .object({ x25519: cases, p256: cases })
  .parse(
    JSON.parse(readFileSync(new URL('./vectors/wycheproof-ecdh.json', import.meta.url), 'utf8')) as unknown,
  );

describe('Wycheproof: a content key under the shared secret of each case is unwrapped', () => {
  const parties = { apu: Buffer.from('Alice'), apv: new Uint8Array() };
  const contentKey = randomBytes(32);
  const wrapUnder = (secret: Buffer) => {
    const wrapKey = concatKdf(secret, { algorithm: 'ECDH-ES+A256KW', bits: 256, ...parties });
    const cipher = createCipheriv('id-aes256-wrap', wrapKey, Buffer.alloc(8, 0xa6));
    return Buffer.concat([cipher.update(contentKey), cipher.final()]);
  };

  test.each(wycheproof.x25519)('X25519, case %i', (_id, point, scalar, secret) => {
    const der = Buffer.concat([Buffer.from('302e020100300506032b656e04220420', 'hex'), scalar]);
    const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    const publicKey = ephemeralKeyObject('X25519', point, new Uint8Array());
    const encryptedKey = wrapUnder(secret);
    expect(unwrapAgreedKey(privateKey, { publicKey, ...parties, encryptedKey })).toEqual(contentKey);
  });

  test.each(wycheproof.p256)('P-256, case %i', (_id, point, scalar, secret) => {
    const privateKey = privateKeyObject({ algorithm: 'NISTP256', privateKey: scalar });
    const publicKey = ephemeralKeyObject('P-256', point.subarray(0, 32), point.subarray(32));
    const encryptedKey = wrapUnder(secret);
    expect(unwrapAgreedKey(privateKey, { publicKey, ...parties, encryptedKey })).toEqual(contentKey);
  });
});

/** Points of order 1, 2, 4 and 8 of Curve25519 and its twist, as RFC 7748, section 6.1, warns of. */
test.each([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
])('a public key of low order is refused: %s', (hex) => {
  const { privateKey } = generateKeyPairSync('x25519');
  const publicKey = ephemeralKeyObject('X25519', Buffer.from(hex, 'hex'), new Uint8Array());
  const encryptedKey = Buffer.alloc(40);
  expect(() => unwrapAgreedKey(privateKey, { publicKey, ...parties, encryptedKey })).toThrow();
});

test.each([
  ['not on the curve', BOB.x, ALICE.y],
  ['of zero', 'A'.repeat(43), 'A'.repeat(43)],
  ['of coordinates above the prime', `${'_'.repeat(42)}8`, BOB.y],
])('a point %s is no key', (_name, x, y) => {
  expect(() => ephemeralKeyObject('P-256', bytesOf(x), bytesOf(y))).toThrow();
});

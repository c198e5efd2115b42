import { createPrivateKey, sign as nodeSign } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { sha512 } from '@noble/hashes/sha2.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createVerifier, type Ed25519Backend } from '#core/crypto/verify.ts';

type Point = typeof ed25519.Point.BASE;

const { Point } = ed25519;
const ORDER = Point.Fn.ORDER;
const PRIME = Point.Fp.ORDER;
/** A point of order 8; every point of small order is a multiple of it. */
const TORSION = Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05');

function littleEndian(value: bigint): Uint8Array {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();
}

function toNumber(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

function challenge(r: Uint8Array, key: Uint8Array, message: Uint8Array): bigint {
  return toNumber(sha512(join(r, key, message))) % ORDER;
}

function torsion(times: number): Point {
  return times === 0 ? Point.ZERO : TORSION.multiplyUnsafe(BigInt(times));
}

interface Crafted {
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  readonly signature: Uint8Array;
  /** Whether S*B = R + k*A holds without the cofactor. */
  readonly holds: boolean;
}

/** A signature by a known scalar whose A and R have torsion: the cofactored equation always holds. */
function craft(seed: number, keyTorsion: number, pointTorsion: number): Crafted {
  const [secret, nonce] = [BigInt(seed) * 7_919n + 3n, BigInt(seed) * 104_729n + 5n];
  const message = Buffer.from(`message ${seed}`);
  const publicKey = Point.BASE.multiply(secret).add(torsion(keyTorsion)).toBytes();
  const r = Point.BASE.multiply(nonce).add(torsion(pointTorsion)).toBytes();
  const k = challenge(r, publicKey, message);
  const s = (nonce + k * secret) % ORDER;
  const rest = (BigInt(pointTorsion) + k * BigInt(keyTorsion)) % 8n;
  return { publicKey, message, signature: join(r, littleEndian(s)), holds: rest === 0n };
}

/** Chalkias, Garillot, Nikolaenko: Taming the many EdDSAs (2020), table of the appendix: message, key, signature. */
const MIXED_A = 'cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d';
const SMALL_A = 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa';
const PLAIN_A = 'f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43';
const BAD_A = 'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff';
const TAMING: readonly (readonly [string, string, string, string, boolean])[] = [
  [
    '0: S = 0, small A and R',
    '8c93255d71dcab10e8f379c26200f3c7bd5f09d9bc3068d3ef4edeb4853022b6',
    SMALL_A,
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a0000000000000000000000000000000000000000000000000000000000000000',
    false,
  ],
  [
    '1: small A, mixed R',
    '9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79',
    SMALL_A,
    'f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04',
    false,
  ],
  [
    '2: mixed A, small R',
    'aebf3f2601a0c8c5d39cc7d8911642f740b78168218da8471772b35f9d35b9ab',
    PLAIN_A,
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa8c4bd45aecaca5b24fb97bc10ac27ac8751a7dfe1baff8b953ec9f5833ca260e',
    false,
  ],
  [
    '3: mixed A and R, both equations hold',
    '9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79',
    MIXED_A,
    '9046a64750444938de19f227bb80485e92b83fdb4b6506c160484c016cc1852f87909e14428a7a1d62e9f22f3d3ad7802db02eb2e688b6c52fcd6648a98bd009',
    true,
  ],
  [
    '4: mixed A and R, only the cofactored equation',
    'e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c',
    MIXED_A,
    '160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed5125ec6bc982a269b723e0668e540911a9a6a58921d6925e434ab10aa7940551a09',
    false,
  ],
  [
    '5: mixed A, only the cofactored equation, by 8k',
    'e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c',
    MIXED_A,
    '21122a84e0b5fca4052f5b1235c80a537878b38f3142356b2c2384ebad4668b7e40bc836dac0f71076f9abe3a53f9c03c1ceeeddb658d0030494ace586687405',
    false,
  ],
  [
    '6: S above the order',
    '85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40',
    '442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623',
    'e96f66be976d82e60150baecff9906684aebb1ef181f67a7189ac78ea23b6c0e547f7690a0e2ddcd04d87dbc3490dc19b3b3052f7ff0538cb68afb369ba3a514',
    false,
  ],
  [
    '7: S far above the order',
    '85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40',
    '442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623',
    '8ce5b96c8f26d0ab6c47958c9e68b937104cd36e13c33566acd2fe8d38aa19427e71f98a473474f2f13f06f97c20d58cc3f54b8bd0d272f42b695dd7e89a8c22',
    false,
  ],
  [
    '8: R not canonical, reduced for the hash',
    '9bedc267423725d473888631ebf45988bad3db83851ee85c85e241a07d148b41',
    PLAIN_A,
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff03be9678ac102edcd92b0210bb34d7428d12ffc5df5f37e359941266a4e35f0f',
    false,
  ],
  [
    '9: R not canonical, not reduced for the hash',
    '9bedc267423725d473888631ebf45988bad3db83851ee85c85e241a07d148b41',
    PLAIN_A,
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffca8c5b64cd208982aa38d4936621a4775aa233aa0505711d8fdcfdaa943d4908',
    false,
  ],
  [
    '10: A not canonical, reduced for the hash',
    'e96b7021eb39c1a163b6da4e3093dcd3f21387da4cc4572be588fafae23c155b',
    BAD_A,
    'a9d55260f765261eb9b84e106f665e00b867287a761990d7135963ee0a7d59dca5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04',
    false,
  ],
  [
    '11: A not canonical, not reduced for the hash',
    '39a591f5321bbe07fd5a23dc2f39d025d74526615746727ceefd6e82ae65c06f',
    BAD_A,
    'a9d55260f765261eb9b84e106f665e00b867287a761990d7135963ee0a7d59dca5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04',
    false,
  ],
];

/** RFC 8032 section 7.1: seed, public key, message, signature. */
const RFC_8032: readonly (readonly [string, string, string, string])[] = [
  [
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
  [
    'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    'af82',
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  ],
];

/** Every encoding of the eight points of small order, and encodings that a lenient decoder would accept for them. */
function smallOrderEncodings(): Uint8Array[] {
  const canonical = Array.from({ length: 8 }, (_, times) => torsion(times).toBytes());
  const lenient = [0n, 1n, PRIME - 1n, PRIME, PRIME + 1n].map(littleEndian);
  return [...canonical, ...lenient].flatMap((encoding) => {
    const other = Buffer.from(encoding);
    other[31] = (other[31] ?? 0) ^ 0x80;
    return [encoding, other];
  });
}

/** Contract of every Ed25519 backend behind the strict rules of core; run it against each of them. */
export function ed25519Contract(name: string, backend: Ed25519Backend): void {
  const verifier = createVerifier(backend);
  const verify = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean =>
    verifier.verify({ algorithm: 'ED25519', publicKey, message, signature });
  const honest = craft(1, 0, 0);

  describe(`Ed25519 by ${name}`, () => {
    it.each(RFC_8032)('RFC 8032 section 7.1, seed %s', (seed, publicKey, message, signature) => {
      const der = join(Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.from(seed, 'hex'));
      const key = createPrivateKey({ key: Buffer.from(der), format: 'der', type: 'pkcs8' });
      const bytes = Buffer.from(message, 'hex');
      expect(nodeSign(null, bytes, key).toString('hex')).toBe(signature);
      expect(verify(Buffer.from(publicKey, 'hex'), bytes, Buffer.from(signature, 'hex'))).toBe(true);
      const longer = join(bytes, Uint8Array.of(0));
      expect(verify(Buffer.from(publicKey, 'hex'), longer, Buffer.from(signature, 'hex'))).toBe(false);
    });

    it.each(TAMING)('Taming the many EdDSAs, %s', (...[, message, publicKey, signature, accepted]) => {
      const parts = [publicKey, message, signature].map((hex) => Buffer.from(hex, 'hex'));
      const [key = Buffer.alloc(0), text = Buffer.alloc(0), signed = Buffer.alloc(0)] = parts;
      expect(verify(key, text, signed)).toBe(accepted);
    });

    it('torsion in A and R: exactly the cofactorless equation', () => {
      const cases = Array.from({ length: 192 }, (_, index) =>
        craft(11 + (index >> 6), index & 7, (index >> 3) & 7),
      );
      for (const [index, { publicKey, message, signature, holds }] of cases.entries()) {
        expect(verify(publicKey, message, signature), `case ${index}`).toBe(holds);
      }
      expect(cases.filter(({ holds }) => holds).length).toBeGreaterThan(8);
      expect(cases.filter(({ holds }) => !holds).length).toBeGreaterThan(100);
    });

    it('A of small order is refused in every encoding, even when the equation holds', () => {
      for (const publicKey of smallOrderEncodings()) {
        const nonce = 77n;
        const r = Point.BASE.multiply(nonce).toBytes();
        // With a challenge that is a multiple of eight, the equation holds for any A of small order.
        for (let index = 0; index < 32; index += 1) {
          const message = Buffer.from(`try ${index}`);
          expect(verify(publicKey, message, join(r, littleEndian(nonce)))).toBe(false);
        }
      }
    });

    it('R of small order is refused in every encoding, even when the equation holds', () => {
      const secret = 1_234_567n;
      const publicKey = Point.BASE.multiply(secret).toBytes();
      for (const r of smallOrderEncodings()) {
        const message = Buffer.from('small R');
        const s = (challenge(r, publicKey, message) * secret) % ORDER;
        expect(verify(publicKey, message, join(r, littleEndian(s)))).toBe(false);
      }
    });

    it('coordinates from p upwards are refused in A and in R', () => {
      const { publicKey, message, signature } = honest;
      for (let y = PRIME; y < 1n << 255n; y += 1n) {
        for (const sign of [0n, 1n << 255n]) {
          const point = littleEndian(y + sign);
          expect(verify(point, message, signature)).toBe(false);
          expect(verify(publicKey, message, join(point, signature.subarray(32)))).toBe(false);
        }
      }
    });

    it('S is below the order, however it is raised', () => {
      const { publicKey, message, signature } = honest;
      const s = toNumber(signature.subarray(32));
      expect(verify(publicKey, message, signature)).toBe(true);
      for (let times = 1n; s + times * ORDER < 1n << 256n; times += 1n) {
        const raised = join(signature.subarray(0, 32), littleEndian(s + times * ORDER));
        expect(verify(publicKey, message, raised)).toBe(false);
      }
      for (const top of [0x20, 0x40, 0x80]) {
        const flagged = Buffer.from(signature);
        flagged[63] = (flagged[63] ?? 0) | top;
        expect(verify(publicKey, message, flagged)).toBe(false);
      }
      for (const wrong of [0n, ORDER - s, ORDER, ORDER + 1n, ORDER - 1n]) {
        expect(verify(publicKey, message, join(signature.subarray(0, 32), littleEndian(wrong)))).toBe(false);
      }
    });

    it('refuses minus the right R, minus the right A, and points off the curve', () => {
      const { publicKey, message, signature } = honest;
      for (const place of [31, 0]) {
        const r = Buffer.from(signature);
        const a = Buffer.from(publicKey);
        r[place] = (r[place] ?? 0) ^ 0x80;
        a[place] = (a[place] ?? 0) ^ 0x80;
        expect(verify(publicKey, message, r)).toBe(false);
        expect(verify(a, message, signature)).toBe(false);
      }
      for (let y = 2n; y < 40n; y += 1n) expect(verify(littleEndian(y), message, signature)).toBe(false);
    });

    it('wrong sizes are false', () => {
      const { publicKey, message, signature } = honest;
      for (const size of [0, 1, 31, 33, 64]) {
        expect(verify(Buffer.alloc(size, 5), message, signature)).toBe(false);
      }
      for (const size of [0, 63, 65, 128]) {
        const cut = Buffer.alloc(size);
        Buffer.from(signature).copy(cut);
        expect(verify(publicKey, message, cut)).toBe(false);
      }
    });

    it('any flipped bit is refused', () => {
      const { publicKey, message, signature } = honest;
      const all = join(publicKey, message, signature);
      for (let bit = 0; bit < all.length * 8; bit += 1) {
        const flipped = Buffer.from(all);
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        const rest = flipped.subarray(32);
        const text = rest.subarray(0, message.length);
        expect(verify(flipped.subarray(0, 32), text, rest.subarray(message.length)), `bit ${bit}`).toBe(
          false,
        );
      }
    });

    it('agrees with an independent signer on random keys and messages', () => {
      const key = fc.uint8Array({ minLength: 32, maxLength: 32 });
      fc.assert(
        fc.property(key, fc.uint8Array({ maxLength: 200 }), (seed, message) => {
          expect(verify(ed25519.getPublicKey(seed), message, ed25519.sign(message, seed))).toBe(true);
        }),
        { numRuns: 20 },
      );
    });
  });
}

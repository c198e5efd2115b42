import { createHash, generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeBase64, encodeBase64Url } from '../encoding/base64.ts';
import { encodeHex } from '../encoding/hex.ts';
import { utf8 } from '../encoding/text.ts';
import {
  findAddressParts,
  isWalletAddress,
  parseAddress,
  rememberedAddresses,
  signerAddress,
  walletAddress,
} from './address.ts';
import { ALGORITHMS, algorithmCode, findAlgorithmByCode, parseAlgorithm } from './algorithm.ts';
import { equalSecrets, hmacSha256, sha256, sha256Hex } from './hash.ts';
import { createKeyCache } from './key-cache.ts';
import { importPublicKey, normalisePublicKey, parsePublicKey, publicKeyBytes, spkiOf } from './public-key.ts';
import { createSigner, type Signer } from './sign.ts';
import { createVerifier, nodeEd25519 } from './verify.ts';

function rsaPkcs8(bits: number): Uint8Array {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: bits });
  return privateKey.export({ format: 'der', type: 'pkcs8' });
}

const ed25519 = createSigner({ algorithm: 'ED25519', privateKey: new Uint8Array(32).fill(1) });
const p256 = createSigner({ algorithm: 'NISTP256', privateKey: new Uint8Array(32).fill(2) });
const rsa = createSigner({ algorithm: 'RSA-4096', privateKey: rsaPkcs8(4096) });
const signers: readonly Signer[] = [ed25519, p256, rsa];
const verifier = createVerifier(nodeEd25519());
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

function flip(bytes: Uint8Array, place: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[place] = (copy[place] ?? 0) ^ 1;
  return copy;
}

describe.each(signers)('signatures by $algorithm', (signer) => {
  const { algorithm, publicKey } = signer;
  const text = utf8('a message');
  const digest = sha256(text);

  it('a message, a digest and its preimage verify', () => {
    expect(verifier.verify({ algorithm, publicKey, message: text, signature: signer.sign(text) })).toBe(true);
    const signature = signer.signDigest(digest);
    expect(verifier.verifyDigest({ algorithm, publicKey, digest, signature })).toBe(true);
    expect(verifier.verifyPreimage({ algorithm, publicKey, preimage: text, signature })).toBe(true);
  });

  it('message and digest verify alike for P-256 and RSA, and differ for Ed25519', () => {
    const same = algorithm !== 'ED25519';
    expect(verifier.verifyDigest({ algorithm, publicKey, digest, signature: signer.sign(text) })).toBe(same);
    const signature = signer.signDigest(digest);
    expect(verifier.verify({ algorithm, publicKey, message: text, signature })).toBe(same);
    expect(verifier.verify({ algorithm, publicKey, message: digest, signature })).toBe(!same);
  });

  it('any flipped byte is refused by both functions', () => {
    const signature = signer.signDigest(digest);
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom('signature', 'publicKey', 'text'), (pick, part) => {
        const change = (name: string, bytes: Uint8Array): Uint8Array =>
          name === part ? flip(bytes, pick % bytes.length) : bytes;
        const changed = change('text', text);
        const check = {
          algorithm,
          publicKey: change('publicKey', publicKey),
          signature: change('signature', signature),
        };
        expect(verifier.verifyDigest({ ...check, digest: sha256(changed) })).toBe(false);
        expect(verifier.verifyPreimage({ ...check, preimage: changed })).toBe(false);
      }),
      { numRuns: 60 },
    );
  });

  it('wrong sizes and unknown algorithms are false, never an exception', () => {
    const signature = signer.signDigest(digest);
    for (const size of [0, 32, 63, 65, 511, 513]) {
      const check = { algorithm, publicKey, digest, signature: new Uint8Array(size) };
      expect(verifier.verifyDigest(check)).toBe(false);
      expect(verifier.verifyDigest({ ...check, publicKey: new Uint8Array(size), signature })).toBe(false);
      expect(verifier.verifyPreimage({ ...check, preimage: text })).toBe(false);
    }
    expect(verifier.verifyDigest({ algorithm, publicKey, digest: digest.subarray(1), signature })).toBe(
      false,
    );
    for (const other of ALGORITHMS.filter((each) => each !== algorithm)) {
      expect(verifier.verifyDigest({ algorithm: other, publicKey, digest, signature })).toBe(false);
    }
    expect(() => signer.signDigest(text)).toThrow(expect.objectContaining({ code: 'INVALID_DIGEST' }));
  });

  it('address reads back and covers the key', () => {
    const address = walletAddress(algorithm, publicKey);
    expect(address).toHaveLength(61);
    const parts = parseAddress(address);
    expect(parts.algorithm).toBe(algorithm);
    expect(encodeHex(parts.keyHash)).toBe(
      createHash('sha256').update(spkiOf(algorithm, publicKey)).digest('hex'),
    );
  });

  it('key text in any accepted spelling has one normal form', () => {
    expect(normalisePublicKey(algorithm, encodeBase64Url(publicKey))).toBe(encodeBase64(publicKey));
    expect(() => parsePublicKey(algorithm, encodeBase64(publicKey.subarray(1)))).toThrow(
      expect.objectContaining({ code: 'VAL_SIG_003' }),
    );
    expect(() => parsePublicKey(algorithm, 'not base64')).toThrow(
      expect.objectContaining({ code: 'VAL_SIG_003' }),
    );
    const key = importPublicKey(algorithm, publicKey);
    expect(key === undefined ? '' : encodeHex(publicKeyBytes(algorithm, key))).toBe(encodeHex(publicKey));
  });
});

describe('keys in another form are refused', () => {
  const digest = sha256('text');

  it('P-256 points that are compressed or off the curve, r or s out of range', () => {
    const signature = p256.signDigest(digest);
    const { publicKey } = p256;
    const x = publicKey.subarray(27, 59);
    const compressed = Buffer.concat([
      Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex'),
      Buffer.from([0x02 + ((publicKey[90] ?? 0) & 1)]),
      x,
    ]);
    for (const key of [compressed, flip(publicKey, 90), publicKey.subarray(26)]) {
      expect(verifier.verifyDigest({ algorithm: 'NISTP256', publicKey: key, digest, signature })).toBe(false);
    }
    const order = Buffer.from(P256_ORDER.toString(16), 'hex');
    const zero = Buffer.alloc(32);
    for (const part of [zero, order, Buffer.alloc(32, 0xff)]) {
      for (const wrong of [
        Buffer.concat([part, signature.subarray(32)]),
        Buffer.concat([signature.subarray(0, 32), part]),
      ]) {
        const check = { algorithm: 'NISTP256', publicKey, signature: wrong } as const;
        expect(verifier.verifyDigest({ ...check, digest })).toBe(false);
        expect(verifier.verifyPreimage({ ...check, preimage: utf8('text') })).toBe(false);
      }
    }
  });

  it('both paths of P-256 agree on s and n - s', () => {
    const signature = p256.signDigest(digest);
    const s = BigInt(`0x${encodeHex(signature.subarray(32))}`);
    const other = Buffer.from((P256_ORDER - s).toString(16).padStart(64, '0'), 'hex');
    const mirrored = Buffer.concat([signature.subarray(0, 32), other]);
    const check = { algorithm: 'NISTP256', publicKey: p256.publicKey, signature: mirrored } as const;
    expect(verifier.verifyDigest({ ...check, digest })).toBe(
      verifier.verifyPreimage({ ...check, preimage: utf8('text') }),
    );
  });

  it('P-256 signatures in DER, RSA of 2048 or 3072 bits and RSA-PSS', () => {
    for (const bits of [2048, 3072]) {
      const { publicKey } = generateKeyPairSync('rsa', { modulusLength: bits });
      const der = publicKey.export({ format: 'der', type: 'spki' });
      expect(importPublicKey('RSA-4096', der)).toBeUndefined();
    }
    const pss = generateKeyPairSync('rsa-pss', { modulusLength: 2048 });
    expect(
      importPublicKey('RSA-4096', pss.publicKey.export({ format: 'der', type: 'spki' })),
    ).toBeUndefined();
    expect(importPublicKey('RSA-4096', Buffer.concat([rsa.publicKey, Buffer.from([0])]))).toBeUndefined();
  });

  it('private keys in another form are refused', () => {
    const refused = expect.objectContaining({ code: 'INVALID_PRIVATE_KEY' });
    expect(() => createSigner({ algorithm: 'ED25519', privateKey: new Uint8Array(31) })).toThrow(refused);
    expect(() => createSigner({ algorithm: 'NISTP256', privateKey: new Uint8Array(32) })).toThrow(refused);
    expect(() => createSigner({ algorithm: 'RSA-4096', privateKey: new Uint8Array(32) })).toThrow(refused);
  });
});

describe('addresses', () => {
  const address = walletAddress('ED25519', ed25519.publicKey);

  it.each([
    ['upper case', address.toUpperCase()],
    ['mixed case', address.replace('w1', 'W1')],
    ['one character more', `${address}q`],
    ['one character less', address.slice(0, -1)],
    ['another prefix', `x${address.slice(1)}`],
    ['nothing', ''],
    ['white space', ` ${address}`],
  ])('refuse %s', (_name, text) => {
    expect(isWalletAddress(text)).toBe(false);
    expect(() => parseAddress(text)).toThrow(expect.objectContaining({ code: 'INVALID_WALLET_ADDRESS' }));
  });

  it('refuse any other character at any position', () => {
    fc.assert(
      fc.property(
        fc.nat(60),
        fc.constantFrom(...'qpzry9x8gf2tvdw0s3jn54khce6mua7lb1io'),
        (place, character) => {
          const changed = address.slice(0, place) + character + address.slice(place + 1);
          expect(isWalletAddress(changed)).toBe(changed === address);
        },
      ),
    );
  });

  it('refuse codes without an algorithm', () => {
    expect(ALGORITHMS.map(algorithmCode)).toEqual([0, 1, 2]);
    expect(findAlgorithmByCode(3)).toBeUndefined();
    expect(findAddressParts(address)?.address).toBe(address);
  });
});

describe('algorithm names, hashes and the key cache', () => {
  it('algorithms have one spelling', () => {
    expect(parseAlgorithm('RSA-4096')).toBe('RSA-4096');
    for (const text of ['ed25519', 'Ed25519', 'P-256', 'NISTP-256', 'RSA', 'RSA4096', 'ML-DSA-65', '']) {
      expect(() => parseAlgorithm(text)).toThrow(expect.objectContaining({ code: 'VAL_SIG_001' }));
    }
  });

  it('hashes', () => {
    expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(encodeHex(sha256(utf8('abc')))).toBe(sha256Hex('abc'));
    // RFC 4231, test case 2.
    expect(encodeHex(hmacSha256('Jefe', utf8('what do ya want for nothing?')))).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
    expect(equalSecrets(utf8('ab'), utf8('ab'))).toBe(true);
    expect(equalSecrets(utf8('ab'), utf8('ac'))).toBe(false);
    expect(equalSecrets(utf8('ab'), utf8('abc'))).toBe(false);
  });

  it('the key cache is bounded, evicts the least recently used key and never mixes algorithms', () => {
    const cache = createKeyCache(2);
    const keys = [1, 2, 3].map((fill) =>
      createSigner({ algorithm: 'ED25519', privateKey: new Uint8Array(32).fill(fill) }),
    );
    const [first, second, third] = keys.map(({ publicKey }) => cache.find('ED25519', publicKey));
    expect(cache.find('ED25519', keys[2]?.publicKey ?? new Uint8Array())).toBe(third);
    expect(cache.find('ED25519', keys[1]?.publicKey ?? new Uint8Array())).toBe(second);
    expect(cache.find('ED25519', keys[0]?.publicKey ?? new Uint8Array())).not.toBe(first);
    expect(cache.find('NISTP256', keys[1]?.publicKey ?? new Uint8Array())).toBeUndefined();
  });
});

describe('the address of a signer', () => {
  it('is that of its key, cached or not', () => {
    const addressOf = rememberedAddresses(2);
    for (const { algorithm, publicKey } of [...signers, ...signers]) {
      const expected = walletAddress(algorithm, publicKey);
      const text = encodeBase64(publicKey);
      for (const each of [signerAddress, addressOf, addressOf]) expect(each(algorithm, text)).toBe(expected);
    }
  });

  it('keeps keys of the same text apart by algorithm, and refuses an invalid key each time', () => {
    const addressOf = rememberedAddresses(10);
    const text = encodeBase64(ed25519.publicKey);
    addressOf('ED25519', text);
    for (let n = 0; n < 2; n += 1) expect(() => addressOf('NISTP256', text)).toThrow();
  });
});

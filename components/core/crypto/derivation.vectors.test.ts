import { describe, expect, it } from 'vitest';
import { encodeHex } from '../encoding/hex.ts';
import { walletAddress } from './address.ts';
import { isMnemonic, mnemonicFromEntropy, seedFromMnemonic } from './bip39.ts';
import {
  contextKeyPath,
  isDerivationContext,
  parseDerivationContext,
  walletKeyPath,
} from './derivation-context.ts';
import { createSigner } from './sign.ts';
import { deriveNode, masterNode, parsePath } from './slip10.ts';

const shortSeed = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');
const longSeed = Buffer.from(
  'fffcf9f6f3f0edeae7e4e1dedbd8d5d2cfccc9c6c3c0bdbab7b4b1aeaba8a5a29f9c999693908d8a8784817e7b7875726f6c696663605d5a5754514e4b484542',
  'hex',
);
const abandon = `${'abandon '.repeat(11)}about`;

// SLIP-0010, test vectors 1 and 2: path, chain code, private key.
const ed25519Cases = [
  [
    'm',
    '90046a93de5380a72b5e45010748567d5ea02bbf6522f979e05c0d8d8ca9fffb',
    '2b4be7f19ee27bbf30c667b642d5f4aa69fd169872f8fc3059c08ebae2eb19e7',
  ],
  [
    "m/0'",
    '8b59aa11380b624e81507a27fedda59fea6d0b779a778918a2fd3590e16e9c69',
    '68e0fe46dfb67e368c75379acec591dad19df3cde26e63b93a8e704f1dade7a3',
  ],
  [
    "m/0'/1'",
    'a320425f77d1b5c2505a6b1b27382b37368ee640e3557c315416801243552f14',
    'b1d0bad404bf35da785a64ca1ac54b2617211d2777696fbffaf208f746ae84f2',
  ],
  [
    "m/0'/1'/2'/2'/1000000000'",
    '68789923a0cac2cd5a29172a475fe9e0fb14cd6adb5ad98a3fa70333e7afa230',
    '8f94d394a8e8fd6b1bc2f3f49f5c47e385281d5c17e65324b0f62483e37e8793',
  ],
] as const;
const p256Cases = [
  [
    'm',
    'beeb672fe4621673f722f38529c07392fecaa61015c80c34f29ce8b41b3cb6ea',
    '612091aaa12e22dd2abef664f8a01a82cae99ad7441b7ef8110424915c268bc2',
  ],
  [
    "m/0'",
    '3460cea53e6a6bb5fb391eeef3237ffd8724bf0a40e94943c98b83825342ee11',
    '6939694369114c67917a182c59ddb8cafc3004e63ca5d3b84403ba8613debc0c',
  ],
  [
    "m/0'/1",
    '4187afff1aafa8445010097fb99d23aee9f599450c7bd140b6826ac22ba21d0c',
    '284e9d38d07d21e4e281b645089a94f4cf5a5a81369acf151a1c3a57f18b2129',
  ],
  [
    "m/0'/1/2'/2/1000000000",
    'b9b7b82d326bb9cb5b5b121066feea4eb93d5241103c9e7a18aad40f1dde8059',
    '21c4f269ef0a5fd1badf47eeacebeeaa3de22eb8e5b0adcd0f27dd99d34d0119',
  ],
] as const;

describe('SLIP-0010', () => {
  it.each(ed25519Cases)('ed25519 %s', (path, chainCode, privateKey) => {
    const node = deriveNode('ed25519', shortSeed, path);
    expect([encodeHex(node.chainCode), encodeHex(node.privateKey)]).toEqual([chainCode, privateKey]);
  });

  it.each(p256Cases)('nist256p1 %s', (path, chainCode, privateKey) => {
    const node = deriveNode('nist256p1', shortSeed, path);
    expect([encodeHex(node.chainCode), encodeHex(node.privateKey)]).toEqual([chainCode, privateKey]);
  });

  it('masters of the second vector', () => {
    expect(encodeHex(masterNode('ed25519', longSeed).privateKey)).toBe(
      '171cb88b1b3c1db25add599712e36245d75bc65a1a5c9e18d76f9f2b1eab4012',
    );
    expect(encodeHex(masterNode('nist256p1', longSeed).privateKey)).toBe(
      'eaa31c2e46ca2962227cf21d73a7ef0ce8b31c756897521eb6c7b39796633357',
    );
  });

  it('retries a child scalar out of range (derivation retry vector of nist256p1)', () => {
    const path = "m/28578'/33941";
    expect(encodeHex(deriveNode('nist256p1', shortSeed, path).privateKey)).toBe(
      '092154eed4af83e078ff9b84322015aefe5769e31270f62c3f66c33888335f3a',
    );
  });

  it('retries a master out of range (seed retry vector of nist256p1)', () => {
    const seed = Buffer.from('a7305bc8df8d0951f0cb224c0e95d7707cbdf2c6ce7e8d481fec69c7ff5e9446', 'hex');
    const master = masterNode('nist256p1', seed);
    expect(encodeHex(master.privateKey)).toBe(
      '3b8c18469a4634517d6d0b65448f8e6c62091b45540a1743c5846be55d47d88f',
    );
    expect(encodeHex(master.chainCode)).toBe(
      '7762f9729fed06121fd13f326884c82f59aa95c57ac492ce8c9654e60efd130c',
    );
  });

  it.each(['', 'm/', 'm/0x1', "m/2147483648'", "n/0'", "m/0''", 'm/-1', 'm/01'])(
    'refuses the path %j',
    (path) => {
      expect(() => parsePath(path)).toThrow(expect.objectContaining({ code: 'INVALID_DERIVATION_PATH' }));
    },
  );

  it('refuses a child of Ed25519 that is not hardened', () => {
    expect(() => deriveNode('ed25519', shortSeed, 'm/0')).toThrow(
      expect.objectContaining({ code: 'INVALID_DERIVATION_PATH' }),
    );
  });
});

describe('BIP-39', () => {
  it('mnemonic and seed of the published vectors', () => {
    expect(mnemonicFromEntropy(new Uint8Array(16))).toBe(abandon);
    expect(mnemonicFromEntropy(new Uint8Array(32))).toBe(`${'abandon '.repeat(23)}art`);
    expect(encodeHex(seedFromMnemonic(abandon, 'TREZOR'))).toBe(
      'c55257c360c07c72029aebc1b53c05ed0362ada38ead3e3e9efa3708e53495531f09a6987599d18264c1e1c92f2cf141630c7a3c4ab7c81b2f001698e7463b04',
    );
  });

  it('accepts typed spellings, and refuses a wrong checksum without repeating the words', () => {
    expect(encodeHex(seedFromMnemonic(`  ${abandon.toUpperCase().replaceAll(' ', '\n ')} `))).toBe(
      encodeHex(seedFromMnemonic(abandon)),
    );
    const wrong = 'abandon '.repeat(12);
    expect(isMnemonic(wrong)).toBe(false);
    expect(() => seedFromMnemonic(wrong)).toThrow(expect.not.stringContaining('abandon'));
    expect(() => mnemonicFromEntropy(new Uint8Array(20))).toThrow(
      expect.objectContaining({ code: 'INVALID_ENTROPY' }),
    );
  });
});

describe('wallet keys of the all-abandon phrase', () => {
  const seed = seedFromMnemonic(abandon);
  const edKey = (slot: number) =>
    createSigner({
      algorithm: 'ED25519',
      privateKey: deriveNode('ed25519', seed, walletKeyPath(slot)).privateKey,
    });

  it.each([
    [
      0,
      '7c2e79f3a1701fb2a86a2c24a3fdf8634b7aad80886c0c0a526d44d23fe8e19a',
      'w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek',
    ],
    [
      100,
      '6c55088835f2cad8374471be3e996e3e65bbcbc85b32d774bcf76e7276de252c',
      'w1quj8qvh6u2mlj6fnjx0953fsvlkhcepkg4j9d5f5zfvtnume7ap4q47gykc',
    ],
    [
      108,
      '2572288cc7485b8a99f57dc2c296bbccd79553b96be44f47abcb56d3d9c01911',
      'w1qvp5g8mw23ephh9t76s3wctqf5fqjkzc8teun9s6qlgwjjzpzzd8qdqku0s',
    ],
  ])('slot %i', (slot, publicKey, address) => {
    const signer = edKey(slot);
    expect(encodeHex(signer.publicKey)).toBe(publicKey);
    expect(walletAddress('ED25519', signer.publicKey)).toBe(address);
  });

  it('P-256 slot 0', () => {
    const { privateKey } = deriveNode('nist256p1', seed, walletKeyPath(0));
    const signer = createSigner({ algorithm: 'NISTP256', privateKey });
    expect(walletAddress('NISTP256', signer.publicKey)).toBe(
      'w1p0hmrj3kw5ej7hhyvfxtckrgjpp33sck4a4x9uwpxhrmn4yyy4ywsysw99d',
    );
  });

  it('contexts have their published slots, and no other name is accepted', () => {
    expect(contextKeyPath('platform:register-attestation')).toBe(walletKeyPath(100));
    expect(contextKeyPath('platform:docket-signing')).toBe("m/44'/0'/0'/0'/102'");
    expect(isDerivationContext('toString')).toBe(false);
    expect(() => parseDerivationContext('platform:docket-signin')).toThrow(
      expect.objectContaining({ code: 'UNKNOWN_DERIVATION_CONTEXT' }),
    );
  });
});

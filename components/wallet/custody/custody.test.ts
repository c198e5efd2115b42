import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { findContext, isGrantableContext, parseRawPath } from './contexts.ts';
import { resolveDerivation } from './derivation.ts';
import { openSecret, type SecretOwner, sealSecret } from './envelope.ts';
import { fileKek } from './kek.ts';

const OWNER: SecretOwner = { address: 'w1example', purpose: 'seed' };

function flipped(bytes: Buffer, index: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(index) ^ 1, index);
  return copy;
}

describe('sealed secrets', () => {
  const kek = fileKek(randomBytes(32));
  const secret = randomBytes(64);

  test('round-trip, and two ciphertexts of one secret differ', async () => {
    const first = await sealSecret(kek, OWNER, secret);
    const second = await sealSecret(kek, OWNER, secret);
    expect(await openSecret(kek, OWNER, first)).toEqual(secret);
    expect(first.sealed.equals(second.sealed)).toBe(false);
    expect(first.wrappedKey.equals(second.wrappedKey)).toBe(false);
    expect(first.kekId).toBe(kek.currentId);
  });

  test('any flipped byte of ciphertext or wrapped key is refused', async () => {
    const sealed = await sealSecret(kek, OWNER, secret);
    for (let i = 0; i < sealed.sealed.length; i += 1) {
      const changed = { ...sealed, sealed: flipped(sealed.sealed, i) };
      await expect(openSecret(kek, OWNER, changed)).rejects.toMatchObject({ code: 'CUSTODY_TAMPERED' });
    }
    for (let i = 0; i < sealed.wrappedKey.length; i += 1) {
      const changed = { ...sealed, wrappedKey: flipped(sealed.wrappedKey, i) };
      await expect(openSecret(kek, OWNER, changed)).rejects.toMatchObject({ code: 'CUSTODY_TAMPERED' });
    }
    const cut = { ...sealed, sealed: sealed.sealed.subarray(0, 20) };
    await expect(openSecret(kek, OWNER, cut)).rejects.toMatchObject({ code: 'CUSTODY_TAMPERED' });
  });

  test('a secret belongs to one wallet and one purpose', async () => {
    const sealed = await sealSecret(kek, OWNER, secret);
    const others: SecretOwner[] = [
      { ...OWNER, address: 'w1other' },
      { ...OWNER, purpose: 'pkcs8' },
    ];
    for (const other of others) {
      await expect(openSecret(kek, other, sealed)).rejects.toMatchObject({ code: 'CUSTODY_TAMPERED' });
    }
  });

  test('a secret wrapped under another key-encryption key is reported as KEK_UNKNOWN', async () => {
    const sealed = await sealSecret(kek, OWNER, secret);
    const other = fileKek(randomBytes(32));
    await expect(openSecret(other, OWNER, sealed)).rejects.toMatchObject({ code: 'KEK_UNKNOWN' });
    expect(() => fileKek(randomBytes(31))).toThrow('32 bytes');
  });
});

describe('derivation contexts', () => {
  test('names match exactly', () => {
    expect(findContext('platform:register-attestation')).toMatchObject({ slot: 100, use: 'signing' });
    for (const name of [
      '',
      'register-attestation',
      'platform:Register-Attestation',
      'toString',
      '__proto__',
    ]) {
      expect(findContext(name)).toBeUndefined();
    }
  });

  const usesOfSlots = [
    [0, 'raw'],
    [99, 'raw'],
    [100, 'raw'],
    [101, 'system'],
    [102, 'system'],
    [103, 'dedicated'],
    [104, 'reserved'],
    [105, 'dedicated'],
    [106, 'dedicated'],
    [107, 'dedicated'],
    [108, 'dedicated'],
    [109, 'dedicated'],
    [110, 'encryption'],
    [111, 'dedicated'],
    [112, 'raw'],
  ] as const;

  test.each(usesOfSlots)(
    'a raw path to slot %d, or below it, has the use %s in every spelling',
    (slot, use) => {
      for (const mark of ["'", 'h', 'H']) {
        const path = `m/${[44, 0, 0, 0, slot].map((level) => `${level}${mark}`).join('/')}`;
        for (const text of [path, `${path}/0${mark}`]) {
          expect(resolveDerivation(text)).toMatchObject({ use, context: undefined });
        }
      }
    },
  );

  test('a raw path outside the slots of contexts has the use raw', () => {
    for (const path of ["m/44'/0'/0'/106'", "m/44'/0'/1'/0'/106'", "m/44'/0'/0'/0'/1060'", "m/106'"]) {
      expect(resolveDerivation(path)).toMatchObject({ use: 'raw' });
    }
  });

  test('a grant may name only contexts that sign chosen bytes or decrypt', () => {
    const names = ['platform:register-attestation', 'platform:payload-encryption'];
    expect(names.filter(isGrantableContext)).toEqual(names);
    for (const name of ['platform:haip-issuer-signing', 'platform:docket-signing', "m/44'", 'toString']) {
      expect(isGrantableContext(name)).toBe(false);
    }
  });

  test('raw paths are hardened and bounded', () => {
    expect(parseRawPath("m/44'/0h/7H")).toBe("m/44'/0'/7'");
    expect(parseRawPath("m/2147483647'")).toBe("m/2147483647'");
    for (const path of [
      'm',
      "m/2147483648'",
      "44'/0'",
      'm/44/0',
      "m/44'//0'",
      "m/01'",
      "m/44'/0'/",
      "m/-1'",
    ]) {
      expect(parseRawPath(path)).toBeUndefined();
    }
  });
});

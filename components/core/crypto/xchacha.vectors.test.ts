import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import vectors from './vectors/xchacha.json' with { type: 'json' };
import { hchacha20, xchacha20poly1305 } from './xchacha.ts';

const hex = (text: string) => Buffer.from(text, 'hex');
const bytes = (sizeBytes: number) => fc.uint8Array({ minLength: sizeBytes, maxLength: sizeBytes });

describe('XChaCha20-Poly1305', () => {
  it('derives the subkey of the draft', () => {
    const { key, input, subkey } = vectors.hchacha20;
    expect(hchacha20(hex(key), hex(input)).toString('hex')).toBe(subkey);
  });

  it('seals and opens the messages of the draft and of Project Wycheproof', () => {
    for (const { key, nonce, aad, plaintext, ciphertext, tag } of [vectors.aead, ...vectors.wycheproof]) {
      const input = { key: hex(key), nonce: hex(nonce), aad: hex(aad) };
      const sealed = xchacha20poly1305.seal(input, hex(plaintext));
      expect(sealed.toString('hex')).toBe(ciphertext + tag);
      expect(xchacha20poly1305.open(input, sealed)?.toString('hex')).toBe(plaintext);
    }
  });

  it('opens what it sealed, and nothing after a change of any bit or input', () => {
    const message = fc.record({
      key: bytes(32),
      nonce: bytes(24),
      aad: fc.uint8Array({ maxLength: 40 }),
      plaintext: fc.uint8Array({ maxLength: 200 }),
      place: fc.nat(),
      bit: fc.nat(7),
    });
    fc.assert(
      fc.property(message, ({ plaintext, place, bit, ...input }) => {
        const sealed = xchacha20poly1305.seal(input, plaintext);
        expect(xchacha20poly1305.open(input, sealed)?.equals(plaintext)).toBe(true);
        const changed = flipped(sealed, place, bit);
        expect(xchacha20poly1305.open(input, changed)).toBeUndefined();
        for (const name of ['key', 'nonce'] as const) {
          const other = { ...input, [name]: flipped(input[name], place, bit) };
          expect(xchacha20poly1305.open(other, sealed)).toBeUndefined();
        }
        const longer = { ...input, aad: Buffer.concat([input.aad, Buffer.of(0)]) };
        expect(xchacha20poly1305.open(longer, sealed)).toBeUndefined();
      }),
    );
  });

  it('opens nothing shorter than a tag, and takes no other sizes', () => {
    const input = { key: Buffer.alloc(32), nonce: Buffer.alloc(24), aad: Buffer.alloc(0) };
    expect(xchacha20poly1305.open(input, Buffer.alloc(15))).toBeUndefined();
    expect(() => xchacha20poly1305.seal({ ...input, nonce: Buffer.alloc(12) }, Buffer.alloc(1))).toThrow();
    expect(() => xchacha20poly1305.open({ ...input, key: Buffer.alloc(16) }, Buffer.alloc(16))).toThrow();
  });
});

function flipped(value: Uint8Array, place: number, bit: number): Buffer {
  const copy = Buffer.from(value);
  const at = place % copy.length;
  copy[at] = (copy[at] ?? 0) ^ (1 << bit);
  return copy;
}

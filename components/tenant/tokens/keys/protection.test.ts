import { expect, it } from 'vitest';
import { createProtection } from './protection.ts';

const protection = createProtection(Buffer.alloc(32, 1));

it('decrypts its own ciphertext, only for the same location', () => {
  const sealed = protection.seal(Buffer.from('private'), 'signing_keys.sealed_private_key.a');
  expect(protection.open(sealed, 'signing_keys.sealed_private_key.a').toString()).toBe('private');
  expect(() => protection.open(sealed, 'signing_keys.sealed_private_key.b')).toThrow();
});

it('refuses another key, every flipped byte and a short value', () => {
  const sealed = protection.seal(Buffer.from('private'), 'x');
  expect(() => createProtection(Buffer.alloc(32, 2)).open(sealed, 'x')).toThrow();
  for (let i = 0; i < sealed.length; i++) {
    const flipped = Buffer.from(sealed);
    flipped[i] = (flipped[i] ?? 0) ^ 1;
    expect(() => protection.open(flipped, 'x')).toThrow();
  }
  expect(() => protection.open(Buffer.of(1), 'x')).toThrow(RangeError);
});

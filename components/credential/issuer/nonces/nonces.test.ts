import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Nonces } from './nonces.ts';

const secret = randomBytes(32);
const nonces = new Nonces({ secret, issuer: 'https://a.test', random: randomBytes });

it('a nonce is live for 300 s, for its purpose, its issuer and its secret alone', () => {
  const nonce = nonces.create('c_nonce', 1_000_000);
  expect(nonces.judge('c_nonce', nonce, 1_000_000)).toBe('live');
  expect(nonces.judge('c_nonce', nonce, 1_300_000)).toBe('live');
  expect(nonces.judge('c_nonce', nonce, 1_300_001)).toBe('expired');
  expect(nonces.judge('dpop', nonce, 1_000_000)).toBe('unknown');
  const other = new Nonces({ secret, issuer: 'https://b.test', random: randomBytes });
  expect(other.judge('c_nonce', nonce, 1_000_000)).toBe('unknown');
  const foreign = new Nonces({ secret: randomBytes(32), issuer: 'https://a.test', random: randomBytes });
  expect(foreign.judge('c_nonce', nonce, 1_000_000)).toBe('unknown');
});

it('no other text is a nonce', () => {
  const nonce = Buffer.from(nonces.create('c_nonce', 1_000_000), 'base64url');
  fc.assert(
    fc.property(fc.nat(nonce.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
      const changed = Buffer.from(nonce);
      changed[at] = (changed[at] ?? 0) ^ flip;
      expect(nonces.judge('c_nonce', changed.toString('base64url'), 1_000_000)).toBe('unknown');
    }),
  );
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(nonces.judge('c_nonce', text, 1_000_000)).toBe('unknown');
    }),
  );
});

it('a secret has 32 bytes', () => {
  expect(() => new Nonces({ secret: randomBytes(31), issuer: 'x', random: randomBytes })).toThrow(RangeError);
});

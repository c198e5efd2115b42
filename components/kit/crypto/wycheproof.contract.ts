import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createVerifier, type Ed25519Backend } from '#core/crypto/verify.ts';

const vectors = z.object({
  cases: z.array(z.tuple([z.int(), z.string(), z.string(), z.string(), z.enum(['valid', 'invalid'])])),
});

/** Project Wycheproof's Ed25519 cases: every backend must give the project's result for each. */
export function wycheproofContract(name: string, backend: Ed25519Backend): void {
  const file = new URL('./vectors/wycheproof-ed25519.json', import.meta.url);
  const { cases } = vectors.parse(JSON.parse(readFileSync(file, 'utf8')));
  const verifier = createVerifier(backend);
  const accepts = (publicKey: string, message: string, signature: string): boolean =>
    verifier.verify({
      algorithm: 'ED25519',
      publicKey: Buffer.from(publicKey, 'hex'),
      message: Buffer.from(message, 'hex'),
      signature: Buffer.from(signature, 'hex'),
    });

  describe(`Wycheproof Ed25519, ${name}`, () => {
    it('has all 151 cases', () => {
      expect(cases).toHaveLength(151);
    });

    it.each(cases)('case %i', (...[, publicKey, message, signature, result]) => {
      expect(accepts(publicKey, message, signature)).toBe(result === 'valid');
    });
  });
}

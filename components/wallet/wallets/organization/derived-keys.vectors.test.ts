import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { seedFromMnemonic } from '#core/crypto/bip39.ts';
import { createSigner } from '#core/crypto/sign.ts';
import { slotPath } from '../../custody/contexts.ts';
import { type KeyMaterial, nodeMaterial, privateKeyAt } from '../../custody/material.ts';
import { derivedKeyPath, KEY_USAGES } from './path.ts';

const keyType = z.enum(['ED25519', 'NISTP256']);

const { mnemonic, cases } = z
  .object({
    mnemonic: z.string(),
    cases: z.array(
      z.object({
        keyType,
        organizationId: z.string(),
        userId: z.string(),
        departmentId: z.number(),
        usage: z.enum(KEY_USAGES),
        index: z.number(),
        path: z.string(),
        publicKey: z.string(),
        contextKeys: z.record(z.string(), z.string()),
      }),
    ),
  })
  .parse(JSON.parse(readFileSync(new URL('vectors/derived-keys.json', import.meta.url), 'utf8')));

const seed: KeyMaterial = { purpose: 'seed', secret: Buffer.from(seedFromMnemonic(mnemonic, '')) };
const publicKeyAt = (type: z.output<typeof keyType>, material: KeyMaterial, path: string): string =>
  Buffer.from(createSigner(privateKeyAt(type, material, path)).publicKey).toString('hex');

describe('keys that an organisation derives', () => {
  test.each(cases)('$keyType $path', (each) => {
    expect(derivedKeyPath(each, each.index)).toBe(each.path);
    const node = nodeMaterial(each.keyType, seed, each.path);
    expect(publicKeyAt(each.keyType, node, slotPath(0))).toBe(each.publicKey);
    for (const [slot, key] of Object.entries(each.contextKeys)) {
      expect(publicKeyAt(each.keyType, node, slotPath(Number(slot)))).toBe(key);
    }
  });

  const name = fc.record({
    organizationId: fc.uuid(),
    userId: fc.uuid(),
    departmentId: fc.nat(2 ** 31 - 1),
    usage: fc.constantFrom(...KEY_USAGES),
  });

  test('a path has six hardened levels below 2^31, and differs in department, usage and index', () => {
    fc.assert(
      fc.property(name, fc.nat(2 ** 31 - 1), (one, index) => {
        const path = derivedKeyPath(one, index);
        expect(path).toMatch(/^m\/5459794'(\/[0-9]+'){5}$/);
        const levels = path.match(/[0-9]+/g)?.map(Number) ?? [];
        expect(levels.every((level) => level < 2 ** 31)).toBe(true);
        expect([levels[2], levels[5]]).toEqual([one.departmentId, index]);
        const others = KEY_USAGES.map((usage) => derivedKeyPath({ ...one, usage }, index));
        expect(new Set(others).size).toBe(KEY_USAGES.length);
        expect(derivedKeyPath({ ...one, userId: one.userId.toUpperCase() }, index)).toBe(path);
      }),
    );
  });

  test('a node opens the same keys as the seed below its path, and no key above it', () => {
    fc.assert(
      fc.property(keyTypes, name, fc.nat(500), (type, one, slot) => {
        const path = derivedKeyPath(one, 0);
        const node = nodeMaterial(type, seed, path);
        const below = slot === 0 ? path : `${path}${slotPath(slot).slice(1)}`;
        expect(publicKeyAt(type, node, slotPath(slot))).toBe(publicKeyAt(type, seed, below));
        expect(publicKeyAt(type, node, slotPath(slot))).not.toBe(publicKeyAt(type, seed, slotPath(slot)));
      }),
      { numRuns: 25 },
    );
  });
});

const keyTypes = fc.constantFrom(...keyType.options);

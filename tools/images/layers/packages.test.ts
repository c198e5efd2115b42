import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findPackage, licencesOf, packageTree } from './packages.ts';

const root = resolve(import.meta.dirname, '../../..');

describe('packages beside a bundle', () => {
  it('come with what they depend on, and with the library of one platform', () => {
    const paths = packageTree(root, ['sodium-native'], 'arm64').map(({ path }) => path);
    expect(paths).toContain('app/node_modules/sodium-native/prebuilds/linux-arm64/sodium-native.node');
    expect(paths).toContain('app/node_modules/require-addon/lib/node.js');
    const prebuilt = paths.filter((path) => path.includes('/prebuilds/'));
    expect(prebuilt.every((path) => path.includes('/linux-arm64/'))).toBe(true);
    expect(paths.filter((path) => /\.(?:ts|md|map)$|\/test\.js$/.test(path))).toEqual([]);
  });

  it('leave their licences with what is bundled of them', () => {
    const sources = ['pino/pino.js', '@noble/curves/ed25519.js', 'pino/lib/levels.js'];
    const text = licencesOf(sources.map((path) => `${root}/node_modules/${path}`));
    expect(text.match(/^== .*$/gm)).toEqual(['== @noble/curves: LICENSE', '== pino: LICENSE']);
    expect(text).toMatch(/The MIT License/);
    expect(licencesOf([`${root}/operator/main.ts`])).toBe('');
  });

  it('say which one is missing', () => {
    expect(() => findPackage(root, 'no-such-package')).toThrow(
      /no-such-package is not installed; run npm ci/,
    );
  });
});

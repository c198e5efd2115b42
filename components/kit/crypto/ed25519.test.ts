import { expect, it } from 'vitest';
import { nodeEd25519 } from '#core/crypto/verify.ts';
import { ed25519Contract } from './ed25519.contract.ts';
import { findSodiumEd25519, loadEd25519 } from './ed25519.ts';
import { wycheproofContract } from './wycheproof.contract.ts';

ed25519Contract('node:crypto', nodeEd25519());
wycheproofContract('node:crypto', nodeEd25519());

const sodium = findSodiumEd25519();
if (sodium !== undefined) {
  ed25519Contract('libsodium', sodium);
  wycheproofContract('libsodium', sodium);
}

it('loads the requested backend', () => {
  expect(loadEd25519('node').name).toBe('node');
  expect(loadEd25519().name).toBe(sodium === undefined ? 'node' : 'sodium');
});

import { expect, test } from 'vitest';
import { assertUsable } from './usable.ts';

const rights = ['sign', 'decrypt', 'encrypt'] as const;

test.each([
  ['Active', undefined, ['', '', '']],
  ['Active', 'Active', ['', '', '']],
  ['Active', 'Rotated', ['KEY_ROTATED', '', '']],
  ['Locked', undefined, ['WALLET_LOCKED', 'WALLET_LOCKED', 'WALLET_LOCKED']],
  ['Locked', 'Rotated', ['WALLET_LOCKED', 'WALLET_LOCKED', 'WALLET_LOCKED']],
  ['Locked', 'Revoked', ['WALLET_LOCKED', 'WALLET_LOCKED', 'WALLET_LOCKED']],
  ['Deleted', undefined, ['WALLET_DELETED', 'WALLET_DELETED', 'WALLET_DELETED']],
  ['Deleted', 'Revoked', ['WALLET_DELETED', 'WALLET_DELETED', 'WALLET_DELETED']],
] as const)('%s, key %s: %j', (status, keyStatus, codes) => {
  const codeOf = (right: (typeof rights)[number]) => {
    try {
      assertUsable({ status, keyStatus }, right);
      return '';
    } catch (error) {
      return (error as { readonly code: string }).code;
    }
  };
  expect(rights.map(codeOf)).toEqual(codes);
});

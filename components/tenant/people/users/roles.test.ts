import { expect, it } from 'vitest';
import { mayGrant, parseRole } from './roles.ts';

it('reads role names in any case, and the older names of User', () => {
  expect(['administrator', 'USER', ' Member', 'consumer', 'Designer'].map(parseRole)).toEqual([
    'Administrator',
    'User',
    'User',
    'User',
    'Designer',
  ]);
  expect(parseRole('Root')).toBeUndefined();
});

it('a caller cannot grant a role above the own rank', () => {
  expect(mayGrant(['Administrator'], 'Administrator', false)).toBe(true);
  expect(mayGrant(['User', 'Auditor'], 'Designer', false)).toBe(false);
  expect(mayGrant(['Administrator'], 'SystemAdmin', true)).toBe(false);
  expect(mayGrant(['SystemAdmin'], 'SystemAdmin', true)).toBe(true);
  expect(mayGrant(['SystemAdmin'], 'SystemAdmin', false)).toBe(false);
  expect(mayGrant([], 'User', false)).toBe(false);
});

import { describe, expect, it } from 'vitest';
import { identifier } from './identifier.ts';
import { listServices } from './services.ts';
import * as wellKnown from './well-known.ts';

describe('identifier', () => {
  it.each([
    wellKnown.SYSTEM_ORGANIZATION_ID,
    wellKnown.PUBLIC_ORGANIZATION_ID,
    wellKnown.DEFAULT_ADMIN_ID,
    ...listServices().map(({ principalId }) => principalId),
    '0190a0a0-0000-7000-8000-000000000001',
    '00000000-0000-0000-0000-000000000000',
  ])('takes %s', (id) => {
    expect(identifier.parse(id)).toBe(id);
  });

  it('gives lower case', () => {
    expect(identifier.parse('0190A0A0-0000-7000-8000-00000000ABCD')).toBe(
      '0190a0a0-0000-7000-8000-00000000abcd',
    );
  });

  it.each([
    '',
    '0190a0a0000070008000000000000001',
    '0190a0a0-0000-7000-8000-00000000000',
    '0190a0a0-0000-7000-8000-0000000000012',
    '0190a0a0-0000-7000-8000-000000000001\n',
    '{0190a0a0-0000-7000-8000-000000000001}',
    'urn:uuid:0190a0a0-0000-7000-8000-000000000001',
    '0190a0a0-0000-7000-8000-00000000000g',
    '0190a0a0-0000-7000-8000-00000000000\u0661',
  ])('refuses %j', (id) => {
    expect(identifier.safeParse(id).success).toBe(false);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { respell } from './spellings.ts';

const schema = z.object({
  displayName: z.string(),
  login_token: z.string().optional(),
  returnTo: z.string().optional(),
  status: z.enum(['Active', 'Suspended']).optional(),
  branding: z.object({ primaryColor: z.string() }).optional(),
  items: z.array(z.object({ isDefault: z.boolean() })).optional(),
  details: z.record(z.string(), z.unknown()).optional(),
});

describe('spellings of members', () => {
  it.each([
    [{ display_name: 'Ada' }, { displayName: 'Ada' }],
    [{ loginToken: 'x' }, { login_token: 'x' }],
    [{ returnUrl: '/app/' }, { returnTo: '/app/' }],
    [{ return_url: '/app/' }, { returnTo: '/app/' }],
    [{ status: ' suspended ' }, { status: 'Suspended' }],
    [{ branding: { primary_color: '#fff' } }, { branding: { primaryColor: '#fff' } }],
    [{ items: [{ is_default: true }] }, { items: [{ isDefault: true }] }],
    [{ details: { free_form: { some_key: 1 } } }, { details: { free_form: { some_key: 1 } } }],
    [{ unknown_member: 1 }, { unknown_member: 1 }],
    [{ displayName: 'Ada', display_name: 'Ada' }, { displayName: 'Ada' }],
  ])('%j is read as %j', (given, read) => {
    expect(respell(schema, given)).toEqual(read);
  });

  it('two spellings with different values are refused', () => {
    expect(() => respell(schema, { displayName: 'Ada', display_name: 'Eve' })).toThrow('two spellings');
  });

  it('a value in its own spelling stays as it is, and no name reaches a prototype', () => {
    const value = fc.record(
      {
        displayName: fc.string(),
        login_token: fc.string(),
        status: fc.constantFrom('Active', 'Suspended', 'other'),
        branding: fc.record({ primaryColor: fc.string() }),
        details: fc.dictionary(fc.string(), fc.jsonValue()),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(value, (one) => {
        expect(respell(schema, one)).toEqual(one);
      }),
    );
    const evil = JSON.parse('{"__proto__": {"polluted": true}, "display_name": "Ada"}');
    const read = respell(schema, evil) as object;
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it('anything that is no object stays as it is', () => {
    for (const value of [null, undefined, 1, 'text', [1]]) expect(respell(schema, value)).toBe(value);
  });
});

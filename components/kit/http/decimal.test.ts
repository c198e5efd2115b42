import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { clampedDecimal, decimal } from './decimal.ts';

/** Texts that some number parser accepts and that are not decimal digits. */
const notDecimal = [
  '',
  ' ',
  '0x10',
  '0b11',
  '0o7',
  '1e3',
  '1E3',
  '1\n',
  '\n1',
  ' 1',
  '1 ',
  '\t1',
  '\u00a01',
  '+1',
  '-1',
  '-0',
  '1.0',
  '1.',
  '.5',
  '1_000',
  '1,000',
  '01',
  '00',
  '٣',
  '１',
  '१',
  '²',
  '1\u200b',
  '\ufeff1',
  '1\0',
  'NaN',
  'Infinity',
  'true',
  'null',
  '1n',
];

describe('decimal', () => {
  it('parses decimal digits', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), (value) => {
        expect(decimal().parse(String(value))).toBe(value);
        expect(clampedDecimal().parse(String(value))).toBe(value);
      }),
    );
  });

  it.each(notDecimal)('refuses %j', (text) => {
    expect(decimal().safeParse(text).success).toBe(false);
    expect(clampedDecimal({ min: 1, max: 9 }).safeParse(text).success).toBe(false);
  });

  it('refuses what is not one text', () => {
    for (const value of [undefined, null, ['1'], ['1', '2'], [], {}, true]) {
      expect(decimal().safeParse(value).success).toBe(false);
      expect(clampedDecimal().safeParse(value).success).toBe(false);
    }
  });

  it('refuses numbers outside the range, or clamps them', () => {
    const range = { min: 1, max: 100 };
    for (const text of ['0', '101', '9007199254740993', '9'.repeat(400)]) {
      expect(decimal(range).safeParse(text).success).toBe(false);
      expect(clampedDecimal(range).parse(text)).toBe(text === '0' ? 1 : 100);
    }
    expect(decimal().safeParse('9007199254740992').success).toBe(false);
  });

  it('is an integer with its bounds in OpenAPI, required unless it is optional', () => {
    const query = z.object({
      from: decimal({ min: 1 }),
      to: decimal({ max: 9 }).optional(),
      page: clampedDecimal({ min: 1, max: 5 }).default(1),
    });
    expect(query.parse({ from: '1' })).toEqual({ from: 1, page: 1 });
    expect(query.safeParse({}).success).toBe(false);
    expect(z.toJSONSchema(query, { io: 'input' })).toMatchObject({
      properties: {
        from: { type: 'integer', minimum: 1 },
        to: { type: 'integer', minimum: 0, maximum: 9 },
        page: { type: 'integer', minimum: 0 },
      },
      required: ['from'],
    });
  });
});

import { describe, expect, it } from 'vitest';
import { createCopyWriter } from './copy-rows.ts';

/** The layout from PostgreSQL's documentation of COPY, binary format: signature, flags, extension, rows, trailer. */
const header = '5047434f50590aff0d0a00' + '00000000' + '00000000';

describe('createCopyWriter', () => {
  it('writes only header and trailer without rows', () => {
    expect(createCopyWriter().finish().toString('hex')).toBe(`${header}ffff`);
  });

  it('writes each value with its length, nulls as -1', () => {
    const expected = [
      '0006',
      '00000004fffffffe',
      '000000080000010000000000',
      '00000002c3a9',
      '00000003010203',
      'ffffffff',
      'ffffffff',
    ].join('');
    const rows = createCopyWriter();
    for (let n = 0; n < 2; n += 1) {
      rows.row(6);
      rows.int4(-2);
      rows.int8(2 ** 40);
      rows.text('é');
      rows.hex('010203');
      rows.text(undefined);
      rows.hex(undefined);
    }
    expect(rows.finish().toString('hex')).toBe(`${header}${expected}${expected}ffff`);
  });

  it('grows with its rows', () => {
    const rows = createCopyWriter();
    const texts = ['€'.repeat(40_000), '', 'x'.repeat(100_000)];
    for (const text of texts) {
      rows.row(1);
      rows.text(text);
    }
    const written = rows.finish();
    const sizes = texts.reduce((sum, text) => sum + 2 + 4 + Buffer.byteLength(text), 0);
    expect(written.length).toBe(header.length / 2 + sizes + 2);
    expect(written.includes(Buffer.from('€'.repeat(40_000)))).toBe(true);
  });
});

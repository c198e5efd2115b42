import { describe, expect, it } from 'vitest';
import { encodeCopyRows } from './copy-rows.ts';

/** The layout from PostgreSQL's documentation of COPY, binary format: signature, flags, extension, rows, trailer. */
const header = '5047434f50590aff0d0a00' + '00000000' + '00000000';

describe('encodeCopyRows', () => {
  it('encodes only header and trailer without rows', () => {
    expect(encodeCopyRows([]).toString('hex')).toBe(`${header}ffff`);
  });

  it('writes each value with its length, nulls as -1', () => {
    const row = [{ int4: -2 }, { int8: 2 ** 40 }, { text: 'é' }, { bytes: Uint8Array.of(1, 2, 3) }, null];
    const expected = [
      '0005',
      '00000004fffffffe',
      '000000080000010000000000',
      '00000002c3a9',
      '00000003010203',
      'ffffffff',
    ].join('');
    expect(encodeCopyRows([row, row]).toString('hex')).toBe(`${header}${expected}${expected}ffff`);
  });
});

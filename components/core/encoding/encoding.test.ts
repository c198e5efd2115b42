import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeBase64Any, encodeBase64, encodeBase64Url, isBase64Url, normaliseBase64 } from './base64.ts';
import { decodeHex, encodeHex, isLowerHex } from './hex.ts';
import { compareCodeUnits, equalBytes, fromUtf8, utf8 } from './text.ts';
import {
  apiTimestamp,
  findTimestamp,
  formatLedgerTimestamp,
  parseTimestamp,
  ticksToMicros,
  ticksToMs,
} from './timestamp.ts';

const bytes = fc.uint8Array({ maxLength: 100 });

describe('base64', () => {
  it.each([
    ['', ''],
    ['Zg==', '66'],
    ['Zg', '66'],
    ['Zm8=', '666f'],
    ['Zm9v', '666f6f'],
    ['-_-_', 'fbffbf'],
    ['+/+/', 'fbffbf'],
    ['-_8=', 'fbff'],
  ])('reads %j', (text, hex) => {
    expect(encodeHex(decodeBase64Any(text))).toBe(hex);
  });

  it.each([
    'A',
    'AAAAA',
    'Zh==',
    'Zh',
    'Zm9=',
    'Zm9',
    'Zg=',
    'Zg===',
    'Zm8==',
    'Zm9v=',
    '====',
    '=',
    '+-AA',
    'Zm9v\n',
    ' Zm9v',
    'Zm 9v',
    'Zm9v====',
    'Z=g=',
    'Zm9ä',
  ])('refuses %j', (text) => {
    expect(() => decodeBase64Any(text)).toThrow(expect.objectContaining({ code: 'INVALID_BASE64' }));
  });

  it('base64url has one spelling', () => {
    fc.assert(
      fc.property(bytes, (data) => {
        const text = encodeBase64Url(data);
        expect(isBase64Url(text)).toBe(true);
        for (const other of [
          `${text}=`,
          `${text}==`,
          ` ${text}`,
          `${text}\n`,
          `${text}.`,
          `${text}\0`,
          `${text}é`,
        ]) {
          expect(isBase64Url(other)).toBe(false);
        }
      }),
    );
    expect(['Zg', 'Zm8', 'Zm9v', '-_-_', ''].filter(isBase64Url)).toHaveLength(5);
    const others = ['A', 'Zh', 'Zm9', 'Zg==', 'Zm8=', '+_-_', '-/-_', 'Z g', 'Zm9v ', 'Zm9v\u2028', 'Ａg'];
    expect(others.filter(isBase64Url)).toEqual([]);
  });

  it('every spelling of bytes decodes, and has one normal form', () => {
    fc.assert(
      fc.property(bytes, (data) => {
        const standard = encodeBase64(data);
        const spellings = [standard, standard.replaceAll('=', ''), encodeBase64Url(data)];
        const padded = standard.replaceAll('+', '-').replaceAll('/', '_');
        for (const text of [...spellings, padded]) {
          expect(equalBytes(decodeBase64Any(text), data)).toBe(true);
          expect(normaliseBase64(text)).toBe(standard);
        }
      }),
    );
  });

  it('no two texts of one alphabet decode to the same bytes', () => {
    const characters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=';
    const unit = fc.constantFrom(...characters.split(''));
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 9 }), (text) => {
        let read: Uint8Array | undefined;
        try {
          read = decodeBase64Any(text);
        } catch {
          return;
        }
        expect(encodeBase64(read).replaceAll('=', '')).toBe(text.replaceAll('=', ''));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('hex and text', () => {
  it('hex decodes to the bytes it was made of', () => {
    fc.assert(
      fc.property(bytes, (data) => {
        expect(equalBytes(decodeHex(encodeHex(data).toUpperCase()), data)).toBe(true);
        expect(isLowerHex(encodeHex(data), data.length)).toBe(true);
      }),
    );
  });

  it.each(['a', 'zz', '0x', 'a ', 'ä0'])('hex refuses %j', (text) => {
    expect(() => decodeHex(text)).toThrow(expect.objectContaining({ code: 'INVALID_HEX' }));
    expect(isLowerHex(text, 1)).toBe(false);
  });

  it('hex refuses another size', () => {
    expect(() => decodeHex('aabb', 1)).toThrow(expect.objectContaining({ code: 'INVALID_HEX' }));
    expect(isLowerHex('AA', 1)).toBe(false);
  });

  it('views into larger memory are read from their own offset', () => {
    const view = Uint8Array.of(9, 1, 2, 9).subarray(1, 3);
    expect(encodeHex(view)).toBe('0102');
    expect(encodeBase64(view)).toBe('AQI=');
  });

  it('text and order', () => {
    expect(fromUtf8(utf8('é€😀'))).toBe('é€😀');
    expect(fromUtf8(Uint8Array.of(0xc0, 0x80))).toBeUndefined();
    expect(fromUtf8(Uint8Array.of(0xed, 0xa0, 0x80))).toBeUndefined();
    expect(fromUtf8(Uint8Array.of(0xef, 0xbb, 0xbf, 0x41))).toBe('\ufeffA');
    expect(fromUtf8(utf8('xabcx').subarray(1, 4))).toBe('abc');
    expect(['ﬀ', '😀', 'b', 'B', 'a'].toSorted(compareCodeUnits)).toEqual(['B', 'a', 'b', '😀', 'ﬀ']);
    expect(compareCodeUnits('a', 'a')).toBe(0);
  });
});

describe('timestamps', () => {
  it.each([
    [0n, '1970-01-01T00:00:00.0000000+00:00'],
    [1n, '1970-01-01T00:00:00.0000010+00:00'],
    [-1n, '1969-12-31T23:59:59.9999990+00:00'],
    [1_795_255_210_123_456n, '2026-11-21T10:00:10.1234560+00:00'],
  ])('%s microseconds', (micros, text) => {
    expect(formatLedgerTimestamp(micros)).toBe(text);
    expect(ticksToMicros(parseTimestamp(text))).toBe(micros);
  });

  it.each([
    ['2026-11-21T10:00:00Z', 0n],
    ['2026-11-21T10:00:00.5Z', 5_000_000n],
    ['2026-11-21T10:00:00.1234567+00:00', 1_234_567n],
    ['2026-11-21T10:00:00.123456789Z', 1_234_567n],
    ['2026-11-21T12:00:00+02:00', 0n],
    ['2026-11-21T04:30:00.0000001-05:30', 1n],
  ])('%s', (text, ticks) => {
    expect(parseTimestamp(text) - parseTimestamp('2026-11-21T10:00:00.000Z')).toBe(ticks);
  });

  it.each([
    '',
    '2026-11-21',
    '2026-11-21T10:00:00',
    '2026-11-21 10:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-11-21T24:00:00Z',
    '2026-11-21T10:60:00Z',
    '2026-11-21T10:00:60Z',
    '2026-11-21T10:00:00.Z',
    '2026-11-21T10:00:00.1234567890Z',
    '2026-11-21T10:00:00+2:00',
    '2026-11-21T10:00:00+24:00',
    '2026-11-21T10:00:00z',
    '2026-11-21T10:00:00Z|',
    '+02026-11-21T10:00:00Z',
    '２026-11-21T10:00:00Z',
  ])('refuses %j', (text) => {
    expect(findTimestamp(text)).toBeUndefined();
    expect(() => parseTimestamp(text)).toThrow(expect.objectContaining({ code: 'INVALID_TIMESTAMP' }));
  });

  it('formatted timestamps parse back and sort as text', () => {
    const micros = fc.bigInt({ min: 0n, max: 253_402_300_799_999_999n });
    fc.assert(
      fc.property(micros, micros, (left, right) => {
        const [first, second] = [formatLedgerTimestamp(left), formatLedgerTimestamp(right)];
        expect(parseTimestamp(first)).toBe(left * 10n);
        expect(compareCodeUnits(first, second) <= 0).toBe(left <= right);
      }),
    );
  });

  it('years before 100 and after 9999, milliseconds', () => {
    expect(ticksToMs(parseTimestamp('0001-01-01T00:00:00Z'))).toBe(-62_135_596_800_000);
    expect(() => formatLedgerTimestamp(253_402_300_800_000_000n)).toThrow('four digits');
    expect(ticksToMs(parseTimestamp('1970-01-01T00:00:01.9999999Z'))).toBe(1999);
    expect(apiTimestamp(0)).toBe('1970-01-01T00:00:00.000Z');
  });
});

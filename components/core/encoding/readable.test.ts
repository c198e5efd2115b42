import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { isReadableLine, isReadableText, readableLine, readableName, readableText } from './readable.ts';

const ZWNJ = '\u200c';
const ZWJ = '\u200d';
const bidirectional = [...'\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c'];
const invisible = ['\u00ad', '\u200b', '\u2060', '\ufeff', '\u180e', '\u{e0001}', '\u{e0041}', '\u{1d173}'];

function* codePoints(): Generator<number> {
  for (let value = 0; value <= 0x10ffff; value += 1) {
    if (value < 0xd800 || value > 0xdfff) yield value;
  }
}

describe('readable text', () => {
  it('refuses every control and format character of this Unicode version except the joiners', () => {
    const refusable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
    const wrong = [...codePoints()].filter((value) => {
      const character = String.fromCodePoint(value);
      const isTag = value >= 0xe0000 && value <= 0xe007f;
      const isReserved = value === 0x2065;
      const refuses = (refusable.test(character) && ![ZWNJ, ZWJ].includes(character)) || isTag || isReserved;
      const inText = refuses && character !== '\n' && character !== '\t';
      return isReadableLine(`a${character}b`) === refuses || isReadableText(`a${character}b`) === inText;
    });
    expect(wrong.map((value) => value.toString(16))).toEqual([]);
  });

  it.each([...bidirectional, ...invisible, '\u0000', '\u001b', '\u007f', '\u0085', '\u2028', '\r'])(
    'refuses %j at any position',
    (character) => {
      for (const text of [character, `${character}a`, `a${character}`, `a${character}b`, `é\n${character}`]) {
        expect(isReadableText(text)).toBe(false);
        expect(isReadableLine(text)).toBe(false);
      }
    },
  );

  it('refuses lone surrogates and reversed pairs', () => {
    for (const text of ['\ud83d', 'a\ude00', '\ude00\ud83d', 'a\ud83db']) {
      expect([isReadableLine(text), isReadableText(text)]).toEqual([false, false]);
    }
  });

  it.each([
    'Straßenbau Köln',
    '株式会社',
    'شركة',
    `می${ZWNJ}خواهم`,
    `👩${ZWJ}👩${ZWJ}👧`,
    `क्${ZWJ}ष`,
    '🏳️',
    'a\u0301',
    'O’Brien & Söhne <x>',
    '',
  ])('takes %j', (text) => {
    expect([isReadableLine(text), isReadableText(text)]).toEqual([true, true]);
  });

  it('accepts line feeds and tabs in texts only', () => {
    expect(isReadableText('one\n\ttwo\n')).toBe(true);
    expect(isReadableText('one\r\ntwo')).toBe(false);
    for (const text of ['one\ntwo', 'one\n', '\ttwo']) expect(isReadableLine(text)).toBe(false);
  });

  it('a name has at least one visible character', () => {
    for (const text of [
      '',
      ' ',
      '\u00a0\u3000',
      ZWJ,
      `${ZWNJ}${ZWJ} `,
      '\u3164',
      '\u2800',
      '\ufe0f',
      '\u034f',
    ]) {
      expect(readableName.safeParse(text).success).toBe(false);
      expect(readableLine.safeParse(text).success).toBe(true);
    }
    expect(readableName.safeParse('x').success).toBe(true);
  });

  it('schemas judge as the functions do, with one message for each fault', () => {
    const unit = fc.constantFrom('a', '\n', '\u202e', '\ud83d', '\ude00', '\u{e0041}', ZWJ, '\u0000', ' ');
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 8 }), (units) => {
        const text = units.join('');
        expect(readableLine.safeParse(text).success).toBe(isReadableLine(text));
        expect(readableText.safeParse(text).success).toBe(isReadableText(text));
      }),
    );
    for (const text of ['a\u202e', '\ud83d', '\u{e0041}']) {
      expect(readableLine.safeParse(text).error?.issues).toHaveLength(1);
    }
  });

  it('publishes a pattern of code units that needs no flag and no property', () => {
    for (const schema of [readableLine, readableText, readableName]) {
      const { pattern = '' } = z.toJSONSchema(schema.min(1).max(9)) as { pattern?: string };
      expect(pattern).toMatch(/^\^\[\^(?:\\u[0-9a-f]{4}-\\u[0-9a-f]{4})+\]\*\$$/);
      for (const flags of ['', 'u']) {
        const published = new RegExp(pattern, flags);
        expect(published.test(`👩${ZWJ}👧 é`)).toBe(true);
        expect(published.test('a\u202eb')).toBe(false);
      }
    }
  });
});

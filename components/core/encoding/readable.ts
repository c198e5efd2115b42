import { z } from 'zod';

type Range = readonly [first: number, last: number];

const TAB_AND_LINE_FEED: readonly Range[] = [[0x09, 0x0a]];

/**
 * Code points up to U+FFFF that are invisible or change how the text around them is shown: control characters (general
 * category Cc), format characters (Cf) except the joiners U+200C and U+200D, and the separators of lines and
 * paragraphs. The list is explicit, so that every process judges alike whatever its version of Unicode (here 17.0).
 */
const UNREADABLE: readonly Range[] = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x0600, 0x0605],
  [0x061c, 0x061c],
  [0x06dd, 0x06dd],
  [0x070f, 0x070f],
  [0x0890, 0x0891],
  [0x08e2, 0x08e2],
  [0x180e, 0x180e],
  [0x200b, 0x200b],
  [0x200e, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0xfeff, 0xfeff],
  [0xfff9, 0xfffb],
];

/** The same beyond U+FFFF, tags included. */
const UNREADABLE_ASTRAL: readonly Range[] = [
  [0x110bd, 0x110bd],
  [0x110cd, 0x110cd],
  [0x13430, 0x1343f],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe007f],
];

// \uXXXX means the same in the regular expressions of ECMAScript and of Python; these patterns are published.
const published = (ranges: readonly Range[]) =>
  new RegExp(`^[^${ranges.map((range) => range.map(codeUnit).join('-')).join('')}]*$`);
const codeUnit = (value: number) => `\\u${value.toString(16).padStart(4, '0')}`;
const codePoint = (value: number) => `\\u{${value.toString(16)}}`;

const LINE = published([...UNREADABLE, ...TAB_AND_LINE_FEED]);
const TEXT = published(UNREADABLE);
const ASTRAL = new RegExp(
  `[${UNREADABLE_ASTRAL.map((range) => range.map(codePoint).join('-')).join('')}]`,
  'u',
);
const VISIBLE = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]/u;

const isPlain = (text: string) => text.isWellFormed() && !ASTRAL.test(text);

/**
 * Whether text is safe to show to people on one line: well-formed Unicode without control characters, line separators
 * and format characters, among them the bidirectional controls (Unicode Technical Report 36 on bidirectional text
 * spoofing). The joiners U+200C and U+200D are allowed, because Persian, Indic scripts and emoji need them.
 */
export function isReadableLine(text: string): boolean {
  return LINE.test(text) && isPlain(text);
}

/** Like `isReadableLine`, and line feeds and tabs are allowed. */
export function isReadableText(text: string): boolean {
  return TEXT.test(text) && isPlain(text);
}

const lineMessage = 'write one line, without control characters and invisible format characters';
const textMessage = 'write text without control characters and invisible format characters';

/** zod schema of `isReadableLine`; empty text passes. */
export const readableLine = z.string().regex(LINE, lineMessage).refine(isPlain, lineMessage);

/** zod schema of `isReadableText`; empty text passes. */
export const readableText = z.string().regex(TEXT, textMessage).refine(isPlain, textMessage);

/** A readable line with at least one visible character. */
export const readableName = readableLine.refine(
  (text) => VISIBLE.test(text),
  'write a name that can be seen',
);

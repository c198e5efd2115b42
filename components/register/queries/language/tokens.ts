import { findTimestamp, formatLedgerTimestamp, ticksToMicros } from '#core/encoding/timestamp.ts';
import {
  type LiteralValue,
  malformedQuery,
  type QueryOption,
  queryLimits,
  unsupportedQuery,
} from './syntax.ts';

export type Token = { readonly at: number; readonly text: string } & (
  | { readonly kind: 'literal'; readonly literal: LiteralValue }
  | { readonly kind: 'word' }
  | { readonly kind: '(' | ')' | ',' | '=' }
  | { readonly kind: 'end' }
);

type Read = (text: string) => LiteralValue | undefined;

interface Form {
  readonly pattern: RegExp;
  /** undefined: the text resembles this form and is malformed */
  readonly read: Read;
  readonly what: string;
}

const date = String.raw`\d{4}-\d{2}-\d{2}`;

const firstMicros = -62_135_596_800_000_000n;
const lastMicros = 253_402_300_799_999_999n;

/** Formats an instant with microseconds; the years are 0001 to 9999. */
export function instantText(micros: bigint): string {
  return formatLedgerTimestamp(micros).replace('0+00:00', 'Z');
}

/** Parses an instant; seconds are optional, and digits after the ninth of a fraction are ignored. */
function instantOf(text: string): LiteralValue | undefined {
  const [day = '', time = ''] = text.toUpperCase().split('T');
  const zone = /(?:Z|[+-]\d{2}:\d{2})$/.exec(time)?.[0] ?? '';
  const clock = time.slice(0, time.length - zone.length).replace(/^(\d{2}:\d{2})$/, '$1:00');
  const ticks = findTimestamp(`${day}T${clock.replace(/(\.\d{9})\d+$/, '$1')}${zone}`);
  const micros = ticks === undefined ? firstMicros - 1n : ticksToMicros(ticks);
  if (micros < firstMicros || micros > lastMicros) return undefined;
  return { type: 'instant', value: instantText(micros) };
}

function dateOf(text: string): LiteralValue | undefined {
  const known = !text.startsWith('0000') && findTimestamp(`${text}T00:00:00Z`) !== undefined;
  return known ? { type: 'date', value: text } : undefined;
}

/** In matching order: each form would match as a prefix of a later one. */
const forms: readonly Form[] = [
  {
    pattern: /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/iy,
    read: (text) => ({ type: 'guid', value: text.toLowerCase() }),
    what: 'a GUID',
  },
  {
    pattern: new RegExp(String.raw`${date}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,12})?)?(?:Z|[+-]\d{2}:\d{2})`, 'iy'),
    read: instantOf,
    what: 'a point in time',
  },
  { pattern: new RegExp(date, 'y'), read: dateOf, what: 'a date' },
  {
    pattern: /[+-]?\d{1,38}(?:\.\d{1,38})?(?:e[+-]?\d{1,2})?/iy,
    read: (text) => ({ type: 'number', value: text.replace(/^\+/, '').toLowerCase() }),
    what: 'a number',
  },
  {
    pattern: /'(?:[^']|'')*'/y,
    read: (text) => {
      const value = text.slice(1, -1).replaceAll("''", "'");
      return value.includes('\u0000') || !value.isWellFormed() ? undefined : { type: 'string', value };
    },
    what: 'a string',
  },
];

const words: Readonly<Record<string, LiteralValue>> = {
  null: { type: 'null' },
  true: { type: 'boolean', value: true },
  false: { type: 'boolean', value: false },
};

const word = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}\p{Cf}]{0,127}/uy;
const wordCharacter = /[\p{L}\p{Nl}\p{Nd}_]/uy;
const space = /[ \t]+/y;

/** OData syntax that is not supported here, by its first character. */
const foreign: Readonly<Record<string, string>> = {
  '/': 'a path',
  '@': 'a parameter alias',
  $: 'a reference like $it',
  '[': 'an array',
  '{': 'an object',
  '"': 'a JSON string',
  '-': 'negation of an expression',
  '.': 'a qualified name',
  ':': 'a lambda expression',
  '*': 'a star',
};

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function readLiteral(option: QueryOption, text: string, at: number): Token | undefined {
  for (const { pattern, read, what } of forms) {
    const found = match(pattern, text, at);
    if (found === undefined) continue;
    const literal = read(found);
    if (literal === undefined) throw malformedQuery({ option, position: at }, `not ${what}`);
    const end = at + found.length;
    if (literal.type !== 'string' && match(wordCharacter, text, end) !== undefined) {
      throw malformedQuery({ option, position: end }, `${what} ends before this character`);
    }
    return { kind: 'literal', literal, at, text: found };
  }
  return undefined;
}

function readToken(option: QueryOption, text: string, at: number): Token {
  const character = text[at] ?? '';
  if (character === '(' || character === ')' || character === ',' || character === '=')
    return { kind: character, at, text: character };
  const found = readLiteral(option, text, at);
  if (found !== undefined) return found;
  const name = match(word, text, at);
  if (name === undefined) {
    if (character === "'") throw malformedQuery({ option, position: at }, 'the string does not end');
    const what = foreign[character];
    throw what === undefined
      ? malformedQuery({ option, position: at }, 'unexpected character')
      : unsupportedQuery({ option, position: at }, what);
  }
  if (text[at + name.length] === "'") {
    throw unsupportedQuery({ option, position: at }, `a literal of the form ${name}'...'`);
  }
  const literal = Object.hasOwn(words, name) ? words[name] : undefined;
  return literal === undefined
    ? { kind: 'word', at, text: name }
    : { kind: 'literal', literal, at, text: name };
}

/**
 * Splits an option's text into tokens; the last one is `end`.
 * @throws AppError invalid QUERY_INVALID, not_implemented QUERY_NOT_SUPPORTED, both with the position
 */
export function readTokens(option: QueryOption, text: string): Token[] {
  if (text.length > queryLimits.characters) {
    throw malformedQuery(
      { option, position: queryLimits.characters },
      `more than ${queryLimits.characters} characters`,
    );
  }
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const gap = match(space, text, at);
    if (gap !== undefined) {
      at += gap.length;
      continue;
    }
    const token = readToken(option, text, at);
    tokens.push(token);
    at += token.text.length;
  }
  return [...tokens, { kind: 'end', at, text: '' }];
}

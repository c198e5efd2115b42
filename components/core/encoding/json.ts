import { AppError } from '../errors/errors.ts';
import { fromUtf8 } from './text.ts';

/** Maximum nesting of arrays and objects. */
export const MAX_JSON_DEPTH = 64;

interface Slice {
  /** The whole text that was scanned; the node is `source.slice(start, end)`. */
  readonly source: string;
  readonly start: number;
  readonly end: number;
}

interface JsonMember {
  readonly name: string;
  /** The name as it was written, quotes included, when it is written with escapes. */
  readonly escapedName: string | undefined;
  readonly value: JsonNode;
}

interface Container extends Slice {
  /** There is no white space between its tokens. */
  readonly isCompact: boolean;
}

export interface JsonObjectNode extends Container {
  readonly kind: 'object';
  readonly members: readonly JsonMember[];
}

interface JsonArrayNode extends Container {
  readonly kind: 'array';
  readonly items: readonly JsonNode[];
}

interface JsonStringNode extends Slice {
  readonly kind: 'string';
  readonly value: string;
}

interface JsonNumberNode extends Slice {
  readonly kind: 'number';
  readonly value: number;
}

interface JsonLiteralNode extends Slice {
  readonly kind: 'boolean' | 'null';
  readonly value: boolean | null;
}

/** One value of a JSON text, with its position in the text. */
export type JsonNode = JsonObjectNode | JsonArrayNode | JsonStringNode | JsonNumberNode | JsonLiteralNode;

interface Scanner {
  readonly text: string;
  /** The text has no escape and no control character, so a string ends at the next quote. */
  readonly isPlain: boolean;
  readonly number: RegExp;
  at: number;
  depth: number;
  /** Number of white-space characters skipped. */
  spaces: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const ARRAY_END = 0x5d;
const OBJECT_END = 0x7d;

/** Text without control characters and escapes. */
const PLAIN = /^[ -[\]-\uffff]*$/;

function refuse(scanner: { readonly at: number }, reason: string): never {
  throw new AppError('invalid', 'VAL_STRUCT_012', `JSON text: ${reason} at position ${scanner.at}`, {
    details: { position: scanner.at, reason },
  });
}

function skipSpace(scanner: Scanner): void {
  const { text } = scanner;
  for (;;) {
    const unit = text.charCodeAt(scanner.at);
    if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
    scanner.at += 1;
    scanner.spaces += 1;
  }
}

function decodeEscapes(scanner: Scanner, raw: string): string {
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch {
    refuse(scanner, 'invalid escape');
  }
  if (typeof value !== 'string' || !value.isWellFormed()) refuse(scanner, 'lone surrogate');
  return value;
}

/** Reads the value of the string that begins at the scanner's position. */
function readString(scanner: Scanner): string {
  if (!scanner.isPlain) return readAnyString(scanner);
  const { text, at: start } = scanner;
  const last = text.indexOf('"', start + 1);
  if (last === -1) refuse({ at: text.length }, 'unterminated string');
  scanner.at = last + 1;
  return text.slice(start + 1, last);
}

function readAnyString(scanner: Scanner): string {
  const { text, at: start } = scanner;
  let at = start + 1;
  let escaped = false;
  for (;;) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) break;
    if (Number.isNaN(unit)) refuse({ at }, 'unterminated string');
    if (unit < 0x20) refuse({ at }, 'control character in a string');
    escaped ||= unit === BACKSLASH;
    at += unit === BACKSLASH ? 2 : 1;
  }
  const value = escaped ? decodeEscapes(scanner, text.slice(start, at + 1)) : text.slice(start + 1, at);
  scanner.at = at + 1;
  return value;
}

/**
 * Whether a string of `writtenLength` characters, quotes included, has no escapes: an escape is longer than its
 * character.
 */
function isVerbatim(value: string, writtenLength: number): boolean {
  return writtenLength === value.length + 2;
}

function scanString(scanner: Scanner): JsonStringNode {
  const { text, at: start } = scanner;
  const value = readString(scanner);
  return { kind: 'string', source: text, start, end: scanner.at, value };
}

function scanNumber(scanner: Scanner): JsonNumberNode {
  const { text, number, at: start } = scanner;
  number.lastIndex = start;
  const match = number.exec(text);
  if (match === null) refuse(scanner, 'unexpected character');
  const value = Number(match[0]);
  if (!Number.isFinite(value)) refuse(scanner, 'number is too large');
  scanner.at = start + match[0].length;
  return { kind: 'number', source: text, start, end: scanner.at, value };
}

function scanLiteral(scanner: Scanner): JsonLiteralNode {
  const { text, at: start } = scanner;
  const word = ['true', 'false', 'null'].find((candidate) => text.startsWith(candidate, start));
  if (word === undefined) refuse(scanner, 'unexpected character');
  scanner.at = start + word.length;
  const place = { source: text, start, end: scanner.at };
  return word === 'null'
    ? { kind: 'null', ...place, value: null }
    : { kind: 'boolean', ...place, value: word === 'true' };
}

/** Reads a comma or the closing bracket; true at the closing bracket. */
function closes(scanner: Scanner, bracket: number): boolean {
  skipSpace(scanner);
  const found = scanner.text.charCodeAt(scanner.at);
  if (found !== bracket && found !== COMMA) refuse(scanner, `expected , or ${String.fromCharCode(bracket)}`);
  scanner.at += 1;
  return found === bracket;
}

function scanArray(scanner: Scanner): JsonArrayNode {
  const { text, at: start, spaces } = scanner;
  const items: JsonNode[] = [];
  scanner.at += 1;
  skipSpace(scanner);
  if (text.charCodeAt(scanner.at) === ARRAY_END) {
    scanner.at += 1;
  } else {
    do items.push(scanValue(scanner));
    while (!closes(scanner, ARRAY_END));
  }
  return { kind: 'array', source: text, start, end: scanner.at, isCompact: scanner.spaces === spaces, items };
}

/** From this number of members on, a set finds duplicate names faster than a linear search. */
const manyMembers = 24;

/** Collects the members of an object as they are read. */
class Members {
  readonly list: JsonMember[] = [];
  #names: Set<string> | undefined;

  has(name: string): boolean {
    if (this.list.length < manyMembers) return this.list.some((member) => member.name === name);
    this.#names ??= new Set(this.list.map((member) => member.name));
    return this.#names.has(name);
  }

  add(member: JsonMember): void {
    this.list.push(member);
    this.#names?.add(member.name);
  }
}

function scanMember(scanner: Scanner, members: Members): JsonMember {
  const { text } = scanner;
  skipSpace(scanner);
  if (text.charCodeAt(scanner.at) !== QUOTE) refuse(scanner, 'expected a member name');
  const start = scanner.at;
  const name = readString(scanner);
  if (members.has(name)) refuse({ at: start }, 'duplicate member name');
  const escapedName = isVerbatim(name, scanner.at - start) ? undefined : text.slice(start, scanner.at);
  skipSpace(scanner);
  if (text.charCodeAt(scanner.at) !== COLON) refuse(scanner, 'expected :');
  scanner.at += 1;
  return { name, escapedName, value: scanValue(scanner) };
}

function scanObject(scanner: Scanner): JsonObjectNode {
  const { text, at: start, spaces } = scanner;
  const members = new Members();
  scanner.at += 1;
  skipSpace(scanner);
  if (text.charCodeAt(scanner.at) === OBJECT_END) {
    scanner.at += 1;
  } else {
    do members.add(scanMember(scanner, members));
    while (!closes(scanner, OBJECT_END));
  }
  return {
    kind: 'object',
    source: text,
    start,
    end: scanner.at,
    isCompact: scanner.spaces === spaces,
    members: members.list,
  };
}

function scanContainer(scanner: Scanner, scan: (scanner: Scanner) => JsonNode): JsonNode {
  scanner.depth += 1;
  if (scanner.depth > MAX_JSON_DEPTH) refuse(scanner, `nested deeper than ${MAX_JSON_DEPTH}`);
  const node = scan(scanner);
  scanner.depth -= 1;
  return node;
}

function scanValue(scanner: Scanner): JsonNode {
  skipSpace(scanner);
  switch (scanner.text.charAt(scanner.at)) {
    case '{':
      return scanContainer(scanner, scanObject);
    case '[':
      return scanContainer(scanner, scanArray);
    case '"':
      return scanString(scanner);
    case 't':
    case 'f':
    case 'n':
      return scanLiteral(scanner);
    default:
      return scanNumber(scanner);
  }
}

/**
 * Scans one JSON text (RFC 8259, with the restrictions of RFC 7493 that make it unambiguous) and keeps the position of
 * each value. Bytes must be UTF-8 without a byte order mark.
 * @throws AppError invalid VAL_STRUCT_012 with `details.position` (UTF-16 units): malformed text, duplicate names,
 * nesting over 64, lone surrogates, numbers beyond a double
 */
export function scanJson(input: string | Uint8Array): JsonNode {
  const text = typeof input === 'string' ? input : fromUtf8(input);
  if (text === undefined) refuse({ at: 0 }, 'bytes are not UTF-8');
  if (!text.isWellFormed()) refuse({ at: 0 }, 'lone surrogate');
  const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
  const scanner: Scanner = { text, isPlain: PLAIN.test(text), number, at: 0, depth: 0, spaces: 0 };
  const node = scanValue(scanner);
  skipSpace(scanner);
  if (scanner.at !== text.length) refuse(scanner, 'text after the value');
  return node;
}

/** The text of a node exactly as it was written. */
export function rawText(node: JsonNode): string {
  return node.source.slice(node.start, node.end);
}

/** The value of a node as plain data. */
export function toValue(node: JsonNode): unknown {
  return JSON.parse(rawText(node));
}

/** The text of a node as it was written, without the white space between its tokens. */
export function minify(node: JsonNode): string {
  if ((node.kind !== 'object' && node.kind !== 'array') || node.isCompact) return rawText(node);
  if (node.kind === 'array') return `[${node.items.map(minify).join(',')}]`;
  const members = node.members.map(
    ({ name, escapedName, value }) => `${escapedName ?? `"${name}"`}:${minify(value)}`,
  );
  return `{${members.join(',')}}`;
}

/** Whether a string was written without escapes. */
export function isUnescaped({ start, end, value }: JsonStringNode): boolean {
  return isVerbatim(value, end - start);
}

/** Finds the member of an object with exactly that name. */
export function findMember(node: JsonNode, name: string): JsonNode | undefined {
  if (node.kind !== 'object') return undefined;
  return node.members.find((member) => member.name === name)?.value;
}

/** Raw text of every member of an object by name; empty for anything else. */
export function memberSlices(node: JsonNode): ReadonlyMap<string, string> {
  if (node.kind !== 'object') return new Map();
  return new Map(node.members.map((member) => [member.name, rawText(member.value)]));
}

/** A JSON object as data. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether JSON data is an object: neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

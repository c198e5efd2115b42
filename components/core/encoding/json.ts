import { AppError } from '../errors/errors.ts';
import { fromUtf8 } from './text.ts';

/** Deepest nesting of arrays and objects that is read (decision D9). */
export const MAX_JSON_DEPTH = 64;

interface Slice {
  /** The whole text that was scanned; the node is `source.slice(start, end)`. */
  readonly source: string;
  readonly start: number;
  readonly end: number;
}

export interface JsonMember {
  readonly name: string;
  /** The name as it was written, quotes and escapes included. */
  readonly rawName: string;
  readonly value: JsonNode;
}

export interface JsonObjectNode extends Slice {
  readonly kind: 'object';
  readonly members: readonly JsonMember[];
}

export interface JsonArrayNode extends Slice {
  readonly kind: 'array';
  readonly items: readonly JsonNode[];
}

export interface JsonStringNode extends Slice {
  readonly kind: 'string';
  readonly value: string;
}

export interface JsonNumberNode extends Slice {
  readonly kind: 'number';
  readonly value: number;
}

export interface JsonLiteralNode extends Slice {
  readonly kind: 'boolean' | 'null';
  readonly value: boolean | null;
}

/** One value of a JSON text, with the place it was written at. */
export type JsonNode = JsonObjectNode | JsonArrayNode | JsonStringNode | JsonNumberNode | JsonLiteralNode;

interface Scanner {
  readonly text: string;
  /** Nothing in it is escaped and nothing is a control character: a string ends at the next quote. */
  readonly isPlain: boolean;
  readonly number: RegExp;
  at: number;
  depth: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const ARRAY_END = 0x5d;
const OBJECT_END = 0x7d;

/** No character is a control character or begins an escape. */
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

function scanString(scanner: Scanner): JsonStringNode {
  const { text, at: start } = scanner;
  if (!scanner.isPlain) return scanAnyString(scanner);
  const last = text.indexOf('"', start + 1);
  if (last === -1) refuse({ at: text.length }, 'unterminated string');
  scanner.at = last + 1;
  return { kind: 'string', source: text, start, end: last + 1, value: text.slice(start + 1, last) };
}

function scanAnyString(scanner: Scanner): JsonStringNode {
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
  const end = at + 1;
  const value = escaped ? decodeEscapes(scanner, text.slice(start, end)) : text.slice(start + 1, at);
  scanner.at = end;
  return { kind: 'string', source: text, start, end, value };
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

/** Steps over a comma; true at the closing bracket. */
function closes(scanner: Scanner, bracket: number): boolean {
  skipSpace(scanner);
  const found = scanner.text.charCodeAt(scanner.at);
  if (found !== bracket && found !== COMMA) refuse(scanner, `expected , or ${String.fromCharCode(bracket)}`);
  scanner.at += 1;
  return found === bracket;
}

function scanArray(scanner: Scanner): JsonArrayNode {
  const { text, at: start } = scanner;
  const items: JsonNode[] = [];
  scanner.at += 1;
  skipSpace(scanner);
  if (text.charCodeAt(scanner.at) === ARRAY_END) {
    scanner.at += 1;
  } else {
    do items.push(scanValue(scanner));
    while (!closes(scanner, ARRAY_END));
  }
  return { kind: 'array', source: text, start, end: scanner.at, items };
}

function scanMember(scanner: Scanner, names: Set<string>): JsonMember {
  skipSpace(scanner);
  if (scanner.text.charCodeAt(scanner.at) !== QUOTE) refuse(scanner, 'expected a member name');
  const name = scanString(scanner);
  if (names.has(name.value)) refuse({ at: name.start }, 'duplicate member name');
  names.add(name.value);
  skipSpace(scanner);
  if (scanner.text.charCodeAt(scanner.at) !== COLON) refuse(scanner, 'expected :');
  scanner.at += 1;
  return { name: name.value, rawName: rawText(name), value: scanValue(scanner) };
}

function scanObject(scanner: Scanner): JsonObjectNode {
  const { text, at: start } = scanner;
  const members: JsonMember[] = [];
  scanner.at += 1;
  skipSpace(scanner);
  if (text.charCodeAt(scanner.at) === OBJECT_END) {
    scanner.at += 1;
  } else {
    const names = new Set<string>();
    do members.push(scanMember(scanner, names));
    while (!closes(scanner, OBJECT_END));
  }
  return { kind: 'object', source: text, start, end: scanner.at, members };
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
 * Reads one JSON text (RFC 8259, and of RFC 7493 what makes it unambiguous) and keeps where each value was written.
 * Bytes must be UTF-8 without a byte order mark.
 * @throws AppError invalid VAL_STRUCT_012 with `details.position` (UTF-16 units): malformed text, duplicate names,
 * nesting over 64, lone surrogates, numbers beyond a double
 */
export function scanJson(input: string | Uint8Array): JsonNode {
  const text = typeof input === 'string' ? input : fromUtf8(input);
  if (text === undefined) refuse({ at: 0 }, 'bytes are not UTF-8');
  if (!text.isWellFormed()) refuse({ at: 0 }, 'lone surrogate');
  const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
  const scanner: Scanner = { text, isPlain: PLAIN.test(text), number, at: 0, depth: 0 };
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

/** The text of a node as it was written, without the white space between its tokens (notes/ledger.md L-38 b). */
export function minify(node: JsonNode): string {
  switch (node.kind) {
    case 'object':
      return `{${node.members.map((member) => `${member.rawName}:${minify(member.value)}`).join(',')}}`;
    case 'array':
      return `[${node.items.map(minify).join(',')}]`;
    default:
      return rawText(node);
  }
}

/** The member of an object with exactly that name. */
export function findMember(node: JsonNode, name: string): JsonNode | undefined {
  if (node.kind !== 'object') return undefined;
  return node.members.find((member) => member.name === name)?.value;
}

/** Raw text of every member of an object by name; empty for anything else. */
export function memberSlices(node: JsonNode): ReadonlyMap<string, string> {
  if (node.kind !== 'object') return new Map();
  return new Map(node.members.map((member) => [member.name, rawText(member.value)]));
}

/** What a JSON object is as data. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether JSON data is an object: neither null nor a list. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

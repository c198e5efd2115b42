import { AppError } from '../errors/errors.ts';
import { utf8 } from './text.ts';

const MAX_DEPTH = 64;

function refuse(reason: string): never {
  throw new AppError('invalid', 'VAL_STRUCT_012', `Value has no canonical JSON: ${reason}`);
}

/** Text that needs no escape: printable ASCII without quote and backslash. */
const PLAIN_TEXT = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

function writeText(text: string): string {
  if (PLAIN_TEXT.test(text)) return `"${text}"`;
  if (!text.isWellFormed()) refuse('lone surrogate');
  return JSON.stringify(text);
}

function writeArray(items: readonly unknown[], depth: number): string {
  let text = '[';
  for (let index = 0; index < items.length; index += 1) {
    if (index > 0) text += ',';
    text += write(items[index], depth + 1);
  }
  return `${text}]`;
}

function isPlain(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function writeObject(value: object, depth: number): string {
  if (!isPlain(value)) refuse('not a plain object');
  let text = '{';
  // Without a comparator sort() orders by UTF-16 code units, as RFC 8785 section 3.2.3 requires.
  for (const name of Object.keys(value).sort()) {
    const member = value[name];
    if (member === undefined) continue;
    if (text.length > 1) text += ',';
    text += `${writeText(name)}:${write(member, depth + 1)}`;
  }
  return `${text}}`;
}

function write(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return writeText(value);
    case 'number':
      return Number.isFinite(value) ? JSON.stringify(value) : refuse('number is not finite');
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth >= MAX_DEPTH) refuse(`nested deeper than ${MAX_DEPTH}`);
      return Array.isArray(value) ? writeArray(value, depth) : writeObject(value, depth);
    default:
      return refuse(`${typeof value} is not a JSON value`);
  }
}

function areMembersInOrder(value: Readonly<Record<string, unknown>>, depth: number): boolean {
  let before = '';
  for (const name of Object.keys(value)) {
    const member = value[name];
    if (name < before || !name.isWellFormed()) return false;
    if (member !== undefined && !isInOrder(member, depth)) return false;
    before = name;
  }
  return true;
}

/** Whether JSON.stringify already writes the canonical text of a value: plain data with all members in order. */
function isInOrder(value: unknown, depth: number): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return typeof value === 'boolean' || value === null;
  if (depth >= MAX_DEPTH) return false;
  if (!Array.isArray(value)) return isPlain(value) && areMembersInOrder(value, depth + 1);
  for (const item of value) if (!isInOrder(item, depth + 1)) return false;
  return true;
}

/**
 * Canonical JSON text (RFC 8785): members ordered by UTF-16 code units, numbers as ECMAScript writes them, no white
 * space. Anything that is not plain JSON data is refused; members that are undefined are left out.
 * @throws AppError invalid VAL_STRUCT_012 for lone surrogates, NaN, infinities, other types, depth over 64
 */
export function canonicalJson(value: unknown): string {
  return isInOrder(value, 0) ? JSON.stringify(value) : write(value, 0);
}

/** UTF-8 bytes of the canonical JSON text; throws like canonicalJson. */
export function canonicalBytes(value: unknown): Uint8Array {
  return utf8(canonicalJson(value));
}

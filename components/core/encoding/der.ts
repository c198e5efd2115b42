import { AppError } from '../errors/errors.ts';

/** Identifier octets of the types that certificates use (X.690 section 8.1.2, RFC 5280 appendix A). */
export const DER = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** One value of a DER text, with its position; contents are read when they are asked for. */
export interface DerNode {
  /** The identifier octet: class, constructed bit and tag number. */
  readonly tag: number;
  readonly source: Uint8Array;
  readonly start: number;
  readonly contentStart: number;
  readonly end: number;
}

function refuse(message: string): never {
  throw new AppError('invalid', 'DER_MALFORMED', `DER: ${message}`);
}

interface Length {
  readonly value: number;
  readonly end: number;
}

/** A length in the definite form, as short as it can be (X.690 sections 8.1.3, 10.1). */
function readLength(source: Uint8Array, at: number): Length {
  const first = source[at] ?? refuse('a length is missing');
  if (first < 0x80) return { value: first, end: at + 1 };
  const count = first & 0x7f;
  if (count === 0 || count > 4) refuse('a length is indefinite or too long');
  let value = 0;
  for (let index = 1; index <= count; index += 1) {
    value = value * 256 + (source[at + index] ?? refuse('a length is cut off'));
  }
  if (value < 0x80 || source[at + 1] === 0) refuse('a length is not minimal');
  return { value, end: at + 1 + count };
}

function readNode(source: Uint8Array, start: number, limit: number): DerNode {
  if (start >= limit) refuse('a value is missing');
  const tag = source[start] ?? refuse('a value is missing');
  if ((tag & 0x1f) === 0x1f) refuse('a tag has the long form');
  const { value, end: contentStart } = readLength(source, start + 1);
  const end = contentStart + value;
  if (end > limit) refuse('a value is cut off');
  return { tag, source, start, contentStart, end };
}

/**
 * Reads one value of the distinguished encoding rules (X.690) that fills all bytes: definite minimal lengths, tag numbers
 * below 31. Functions of this file throw the same error.
 * @throws AppError invalid DER_MALFORMED
 */
export function readDer(source: Uint8Array): DerNode {
  const node = readNode(source, 0, source.length);
  if (node.end !== source.length) refuse('bytes after the value');
  return node;
}

/** The bytes of a value, identifier and length included. */
export function derBytes({ source, start, end }: DerNode): Uint8Array {
  return source.subarray(start, end);
}

/** The content of a value. */
export function derContent({ source, contentStart, end }: DerNode): Uint8Array {
  return source.subarray(contentStart, end);
}

/** Refuses a value of another type; returns it otherwise. */
export function expectDer(node: DerNode | undefined, tag: number): DerNode {
  if (node === undefined || node.tag !== tag) refuse(`expected a value with the tag ${tag.toString(16)}`);
  return node;
}

function readChildren(node: DerNode, most: number): readonly DerNode[] {
  if ((node.tag & 0x20) === 0) refuse('a primitive value has no children');
  const children: DerNode[] = [];
  let at = node.contentStart;
  while (at < node.end) {
    if (children.length === most) refuse('a value has too many members');
    const child = readNode(node.source, at, node.end);
    children.push(child);
    at = child.end;
  }
  return children;
}

/** The values inside a constructed value. */
export function derChildren(node: DerNode): readonly DerNode[] {
  return readChildren(node, Number.POSITIVE_INFINITY);
}

/** The values inside a SEQUENCE. */
export function derSequence(node: DerNode | undefined): readonly DerNode[] {
  return derChildren(expectDer(node, DER.sequence));
}

/** The values inside a SEQUENCE of at most `most`, for bytes that are not trusted: a value of two bytes takes many in memory. */
export function derShortSequence(node: DerNode | undefined, most: number): readonly DerNode[] {
  return readChildren(expectDer(node, DER.sequence), most);
}

/** The one value inside an explicitly tagged value. */
export function derInner(node: DerNode): DerNode {
  const [inner, ...more] = derChildren(node);
  if (inner === undefined || more.length > 0) refuse('an explicit tag holds one value');
  return inner;
}

/** An object identifier as text (X.690 section 8.19). */
export function derOid(node: DerNode | undefined): string {
  const content = derContent(expectDer(node, DER.oid));
  const arcs: number[] = [];
  let value = 0;
  let isStart = true;
  for (const byte of content) {
    if (isStart && byte === 0x80) refuse('an object identifier is not minimal');
    value = value * 128 + (byte & 0x7f);
    if (value > Number.MAX_SAFE_INTEGER / 128) refuse('an object identifier is too long');
    isStart = (byte & 0x80) === 0;
    if (isStart) {
      arcs.push(value);
      value = 0;
    }
  }
  const [first, ...rest] = arcs;
  if (first === undefined || !isStart) refuse('an object identifier is cut off');
  const root = Math.min(Math.floor(first / 40), 2);
  return [root, first - root * 40, ...rest].join('.');
}

/** The content of an INTEGER in two's complement, as short as it can be (X.690 section 8.3). */
export function derInteger(node: DerNode | undefined, tag: number = DER.integer): Uint8Array {
  const content = derContent(expectDer(node, tag));
  const [first, second] = content;
  if (first === undefined) refuse('an integer is empty');
  const isPadded =
    second !== undefined && (first === 0x00 ? second < 0x80 : first === 0xff && second >= 0x80);
  if (isPadded) refuse('an integer is not minimal');
  return content;
}

/** A small INTEGER from 0 on. */
export function derCount(node: DerNode | undefined, tag: number = DER.integer): number {
  const content = derInteger(node, tag);
  const [first = 0] = content;
  if (first >= 0x80 || content.length > 4) refuse('a number is negative or too large');
  return content.reduce((value, byte) => value * 256 + byte, 0);
}

/** A BOOLEAN (X.690 section 11.1). */
export function derBoolean(node: DerNode | undefined, tag: number = DER.boolean): boolean {
  const [value, ...more] = derContent(expectDer(node, tag));
  if (more.length > 0 || (value !== 0x00 && value !== 0xff)) refuse('a boolean is neither true nor false');
  return value === 0xff;
}

/** A BIT STRING: its bytes, and the number of bits of the last one that are not used; those are zero. */
export function derBits(node: DerNode | undefined): { readonly bytes: Uint8Array; readonly unused: number } {
  const content = derContent(expectDer(node, DER.bitString));
  const unused = content[0] ?? refuse('a bit string is empty');
  const bytes = content.subarray(1);
  const last = bytes.at(-1);
  const isSound = last === undefined ? unused === 0 : unused <= 7 && (last & ((1 << unused) - 1)) === 0;
  if (!isSound) refuse('a bit string has stray bits');
  return { bytes, unused };
}

/** The bytes of a BIT STRING that holds whole bytes. */
export function derBitBytes(node: DerNode | undefined): Uint8Array {
  const { bytes, unused } = derBits(node);
  if (unused !== 0) refuse('a bit string has a broken byte');
  return bytes;
}

const UTC_TIME = /^([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})Z$/;
const GENERALIZED_TIME = /^([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})Z$/;

/** A time with seconds in UTC, in milliseconds since the epoch (RFC 5280 section 4.1.2.5). */
export function derTime(node: DerNode | undefined): number {
  if (node?.tag !== DER.utcTime && node?.tag !== DER.generalizedTime) refuse('expected a time');
  const isShort = node.tag === DER.utcTime;
  const text = Buffer.from(derContent(node)).toString('latin1');
  const match = (isShort ? UTC_TIME : GENERALIZED_TIME).exec(text);
  if (match === null) refuse('a time is malformed');
  const [written = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number);
  const century = written >= 50 ? 1900 : 2000;
  const year = isShort ? century + written : written;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  const isReal =
    date.getUTCMonth() === month - 1 &&
    date.getUTCDate() === day &&
    hour <= 23 &&
    minute <= 59 &&
    second <= 59;
  if (!isReal) refuse('a time does not exist');
  return date.getTime();
}

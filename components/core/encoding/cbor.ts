import { AppError } from '../errors/errors.ts';
import { fromUtf8 } from './text.ts';

interface Slice {
  /** The whole that was read; the item is `source.subarray(start, end)`. */
  readonly source: Uint8Array;
  readonly start: number;
  readonly end: number;
}

interface CborEntry {
  readonly key: CborNode;
  readonly value: CborNode;
}

/** One data item of a CBOR text (RFC 8949), with its position. */
export type CborNode = Slice &
  (
    | { readonly kind: 'integer'; readonly value: bigint }
    | { readonly kind: 'bytes'; readonly value: Uint8Array }
    | { readonly kind: 'text'; readonly value: string }
    | { readonly kind: 'array'; readonly items: readonly CborNode[] }
    | { readonly kind: 'map'; readonly entries: readonly CborEntry[] }
    | { readonly kind: 'tag'; readonly tag: number; readonly inner: CborNode }
    | { readonly kind: 'simple'; readonly value: boolean | null | undefined }
    | { readonly kind: 'float'; readonly value: number }
  );

/** Deepest nesting of arrays, maps and tags. */
const MAX_DEPTH = 24;

/** Most data items of one text: each takes a hundred times the memory of its shortest encoding. */
const MAX_ITEMS = 65_536;

/** The bytes, and how many items may still be read from them. */
interface Reader {
  readonly source: Uint8Array;
  itemsLeft: number;
}

const MAJOR = { unsigned: 0, negative: 1, bytes: 2, text: 3, array: 4, map: 5, tag: 6, simple: 7 } as const;

function refuse(message: string): never {
  throw new AppError('invalid', 'CBOR_MALFORMED', `CBOR: ${message}`);
}

interface Head {
  readonly major: number;
  /** The low five bits. */
  readonly info: number;
  readonly argument: bigint;
  readonly end: number;
}

function readHead(source: Uint8Array, at: number): Head {
  const first = source[at] ?? refuse('an item is missing');
  const [major, info] = [first >> 5, first & 0x1f];
  if (info < 24) return { major, info, argument: BigInt(info), end: at + 1 };
  if (info > 27) return refuse('an item has an indefinite or reserved length');
  const sizeBytes = 1 << (info - 24);
  const end = at + 1 + sizeBytes;
  if (end > source.length) refuse('a head is cut off');
  let argument = 0n;
  for (const byte of source.subarray(at + 1, end)) argument = argument * 256n + BigInt(byte);
  return { major, info, argument, end };
}

/** A length, which is never more than the bytes that are left. */
function lengthOf(source: Uint8Array, { argument, end }: Head): number {
  return argument <= BigInt(source.length - end) ? Number(argument) : refuse('a length is beyond the end');
}

function readSimple(source: Uint8Array, start: number, { info, argument, end }: Head): CborNode {
  const place = { source, start, end };
  const view = new DataView(source.buffer, source.byteOffset, source.byteLength);
  switch (info) {
    case 20:
    case 21:
      return { ...place, kind: 'simple', value: argument === 21n };
    case 22:
      return { ...place, kind: 'simple', value: null };
    case 23:
      return { ...place, kind: 'simple', value: undefined };
    case 25:
      return { ...place, kind: 'float', value: view.getFloat16(start + 1) };
    case 26:
      return { ...place, kind: 'float', value: view.getFloat32(start + 1) };
    case 27:
      return { ...place, kind: 'float', value: view.getFloat64(start + 1) };
    default:
      return refuse('a simple value is not known');
  }
}

function readString(source: Uint8Array, start: number, head: Head): CborNode {
  const end = head.end + lengthOf(source, head);
  const value = source.subarray(head.end, end);
  if (head.major === MAJOR.bytes) return { kind: 'bytes', source, start, end, value };
  return { kind: 'text', source, start, end, value: fromUtf8(value) ?? refuse('a text is not UTF-8') };
}

function readArray(reader: Reader, start: number, head: Head, depth: number): CborNode {
  const { source } = reader;
  const items: CborNode[] = [];
  let { end } = head;
  for (let left = lengthOf(source, head); left > 0; left -= 1) {
    const item = readItem(reader, end, depth + 1);
    items.push(item);
    end = item.end;
  }
  return { kind: 'array', source, start, end, items };
}

/** What makes a key another one than the others, however it is encoded. */
function identityOf(key: CborNode): string {
  if (key.kind !== 'integer' && key.kind !== 'text') refuse('a key is neither an integer nor text');
  return `${key.kind}:${key.value}`;
}

function readMap(reader: Reader, start: number, head: Head, depth: number): CborNode {
  const { source } = reader;
  const entries: CborEntry[] = [];
  const identities = new Set<string>();
  let { end } = head;
  for (let left = lengthOf(source, head); left > 0; left -= 1) {
    const key = readItem(reader, end, depth + 1);
    const value = readItem(reader, key.end, depth + 1);
    const identity = identityOf(key);
    if (identities.has(identity)) refuse('a key occurs twice');
    identities.add(identity);
    entries.push({ key, value });
    end = value.end;
  }
  return { kind: 'map', source, start, end, entries };
}

function readItem(reader: Reader, start: number, depth: number): CborNode {
  if (depth > MAX_DEPTH) refuse(`nested deeper than ${MAX_DEPTH}`);
  if (reader.itemsLeft === 0) refuse(`more than ${MAX_ITEMS} items`);
  reader.itemsLeft -= 1;
  const { source } = reader;
  const head = readHead(source, start);
  const { argument, end } = head;
  switch (head.major) {
    case MAJOR.unsigned:
      return { kind: 'integer', source, start, end, value: argument };
    case MAJOR.negative:
      return { kind: 'integer', source, start, end, value: -1n - argument };
    case MAJOR.bytes:
    case MAJOR.text:
      return readString(source, start, head);
    case MAJOR.array:
      return readArray(reader, start, head, depth);
    case MAJOR.map:
      return readMap(reader, start, head, depth);
    case MAJOR.tag: {
      if (argument > 0xffffffffn) refuse('a tag is not known');
      const inner = readItem(reader, end, depth + 1);
      return { kind: 'tag', source, start, end: inner.end, tag: Number(argument), inner };
    }
    default:
      return readSimple(source, start, head);
  }
}

/**
 * Reads one data item that fills all bytes (RFC 8949) and keeps the position of each item, so that digests and signatures
 * cover the bytes as they were received. Refused are indefinite lengths, keys that occur twice or are neither integers nor
 * text, text that is not UTF-8, simple values without a meaning, nesting over 24, more than
 * 65,536 items.
 * @throws AppError invalid CBOR_MALFORMED
 */
export function readCbor(source: Uint8Array): CborNode {
  const node = readItem({ source, itemsLeft: MAX_ITEMS }, 0, 1);
  if (node.end !== source.length) refuse('bytes after the item');
  return node;
}

/** The bytes of an item as they were received. */
export function cborBytes({ source, start, end }: Slice): Uint8Array {
  return source.subarray(start, end);
}

/** The value of a key in a map; undefined when there is none, or the node is no map. */
export function findCborMember(node: CborNode, name: string | number): CborNode | undefined {
  if (node.kind !== 'map') return undefined;
  const [kind, value] = typeof name === 'number' ? ['integer', BigInt(name)] : ['text', name];
  return node.entries.find(({ key }) => key.kind === kind && 'value' in key && key.value === value)?.value;
}

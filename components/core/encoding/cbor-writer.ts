import { AppError } from '../errors/errors.ts';
import { concatBytes, utf8 } from './text.ts';

/** A value with a tag in front of it (RFC 8949 section 3.4). */
export interface CborTagged {
  readonly tag: number;
  readonly value: CborValue;
}

/** An item that was encoded before. */
interface CborEncoded {
  readonly encoded: Uint8Array;
}

/** What can be written. Numbers without a fraction are integers; objects other than these are not known. */
export type CborValue =
  | number
  | bigint
  | string
  | boolean
  | null
  | Uint8Array
  | readonly CborValue[]
  | ReadonlyMap<string | number, CborValue>
  | CborTagged
  | CborEncoded;

function refuse(message: string): never {
  throw new AppError('invalid', 'CBOR_MALFORMED', `CBOR: ${message}`);
}

/** A head as short as it can be (RFC 8949 section 4.2.1). */
function head(major: number, argument: bigint): Uint8Array {
  const type = major << 5;
  if (argument < 24n) return Uint8Array.of(type | Number(argument));
  const [info, sizeBytes] =
    argument < 1n << 8n ? [24, 1] : argument < 1n << 16n ? [25, 2] : argument < 1n << 32n ? [26, 4] : [27, 8];
  if (argument >= 1n << 64n) refuse('a number is too large');
  const bytes = new Uint8Array(1 + sizeBytes);
  bytes[0] = type | info;
  for (let at = sizeBytes, left = argument; at > 0; at -= 1, left >>= 8n) bytes[at] = Number(left & 0xffn);
  return bytes;
}

function integer(value: bigint): Uint8Array {
  return value >= 0n ? head(0, value) : head(1, -1n - value);
}

/** A float in the shortest form that keeps its value (RFC 8949 section 4.2.2). */
function float(value: number): Uint8Array {
  if (!Number.isFinite(value)) refuse('a number is not finite');
  const isHalf = Math.f16round(value) === value;
  const isSingle = Math.fround(value) === value;
  const bytes = new Uint8Array(isHalf ? 3 : isSingle ? 5 : 9);
  const view = new DataView(bytes.buffer);
  bytes[0] = isHalf ? 0xf9 : isSingle ? 0xfa : 0xfb;
  if (isHalf) view.setFloat16(1, value);
  else if (isSingle) view.setFloat32(1, value);
  else view.setFloat64(1, value);
  return bytes;
}

/** Entries in the order of the bytes of their keys (RFC 8949 section 4.2.1). */
function map(entries: ReadonlyMap<string | number, CborValue>): Uint8Array {
  const written = [...entries].map(([key, value]) => ({ key: writeCbor(key), value: writeCbor(value) }));
  written.sort((left, right) => Buffer.compare(left.key, right.key));
  return concatBytes([head(5, BigInt(written.length)), ...written.flatMap(({ key, value }) => [key, value])]);
}

function string(major: number, bytes: Uint8Array): Uint8Array {
  return concatBytes([head(major, BigInt(bytes.length)), bytes]);
}

function writeObject(value: Exclude<CborValue, number | bigint | string | boolean | null>): Uint8Array {
  if (value instanceof Uint8Array) return string(2, value);
  if (value instanceof Map) return map(value);
  if ('encoded' in value) return value.encoded;
  if ('tag' in value) return concatBytes([head(6, BigInt(value.tag)), writeCbor(value.value)]);
  if (!(Symbol.iterator in value) || !('length' in value)) return refuse('a value is not known');
  return concatBytes([head(4, BigInt(value.length)), ...value.map((item) => writeCbor(item))]);
}

/**
 * Writes a data item in the core deterministic encoding (RFC 8949 section 4.2.1): definite lengths, shortest heads and
 * floats, keys in the order of their bytes.
 * @throws AppError invalid CBOR_MALFORMED for numbers that are not finite or have more than 64 bits, and lone surrogates
 */
export function writeCbor(value: CborValue): Uint8Array {
  switch (typeof value) {
    case 'bigint':
      return integer(value);
    case 'number':
      return Number.isSafeInteger(value) ? integer(BigInt(value)) : float(value);
    case 'string':
      if (!value.isWellFormed()) refuse('a text has a lone surrogate');
      return string(3, utf8(value));
    case 'boolean':
      return Uint8Array.of(value ? 0xf5 : 0xf4);
    default:
      return value === null ? Uint8Array.of(0xf6) : writeObject(value);
  }
}

/** CBOR inside a byte string, with the tag that says so (RFC 8949 section 3.4.5.1). */
export function embeddedCbor(value: CborValue): CborTagged {
  return { tag: 24, value: writeCbor(value) };
}

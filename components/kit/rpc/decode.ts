import { type DescField, type DescMessage, fromBinary, ScalarType } from '@bufbuild/protobuf';

/**
 * Maximum number of fields of one message, those of its submessages and elements included: what a docket of 10,000
 * transactions needs, with a margin. An empty element takes two bytes on the wire and a hundred in memory, so a message
 * that repeats it would keep the process busy for seconds.
 */
const MOST_FIELDS = 131_072;

/** Bytes that are no message, or a message over the limit. */
export class Undecodable {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/**
 * Decodes a message, or returns the reason why it is refused. The reason is not thrown: the transport would answer a
 * thrown error, and nothing would record the sender.
 */
export function decodeMessage(schema: DescMessage, bytes: Uint8Array): unknown {
  try {
    if (!new FieldCount(bytes).isWithin(schema)) return new Undecodable('too many fields');
    return fromBinary(schema, bytes);
  } catch (error) {
    return new Undecodable(error instanceof Error ? error.message : 'malformed');
  }
}

/** Counts the fields of a message without building objects; it keeps only offsets. */
class FieldCount {
  readonly #bytes: Uint8Array;
  #at = 0;
  #left = MOST_FIELDS;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Throws RangeError for bytes that end within a field or are no fields. */
  isWithin(schema: DescMessage): boolean {
    this.#message(schema, this.#bytes.length);
    return this.#left >= 0;
  }

  #message(schema: DescMessage, end: number): void {
    while (this.#at < end && this.#left >= 0) {
      const tag = this.#varint();
      this.#left -= 1;
      const wireType = tag & 7;
      if (wireType === 2) {
        const field = schema.fields.find(({ number }) => number === tag >>> 3);
        this.#delimited(field, end);
      } else {
        this.#plain(wireType);
      }
      if (this.#at > end) throw new RangeError('a field is longer than its message');
    }
  }

  #plain(wireType: number): void {
    if (wireType === 0) this.#varint();
    else if (wireType === 1) this.#at += 8;
    else if (wireType === 5) this.#at += 4;
    else throw new RangeError('a wire type that no field has');
  }

  #delimited(field: DescField | undefined, end: number): void {
    const length = this.#varint();
    const to = this.#at + length;
    if (to > end) throw new RangeError('a field is longer than its message');
    const message = messageOf(field);
    if (message !== undefined) {
      this.#message(message, to);
    } else if (isPacked(field)) {
      this.#left -= length;
    }
    this.#at = to;
  }

  /** The lower 32 bits. */
  #varint(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new RangeError('the message ends in the middle of a number');
      this.#at += 1;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new RangeError('a number is too long');
  }
}

function messageOf(field: DescField | undefined): DescMessage | undefined {
  if (field?.fieldKind === 'message') return field.message;
  return field?.fieldKind === 'list' && field.listKind === 'message' ? field.message : undefined;
}

/** Elements of a numeric list may be packed, one byte each. */
function isPacked(field: DescField | undefined): boolean {
  if (field?.fieldKind === 'map') return true;
  if (field?.fieldKind !== 'list' || field.listKind === 'message') return false;
  return (
    field.listKind === 'enum' || (field.scalar !== ScalarType.STRING && field.scalar !== ScalarType.BYTES)
  );
}

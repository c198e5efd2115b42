/** One element of DER (ITU-T X.690): definite and minimal lengths, tags of one byte. */
export interface DerElement {
  /** The identifier octet: class, form and number. */
  readonly tag: number;
  /** The content octets. */
  readonly content: Uint8Array;
  /** Identifier, length and content octets. */
  readonly bytes: Uint8Array;
}

/** Identifier octets of X.690. */
export const TAGS = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
} as const;

/** Bytes that are no DER, or not of the expected type. Parsers of this folder turn it into `undefined`. */
export class DerError extends Error {}

/** The only element of the bytes. @throws DerError when they are no element, or more than one */
export function readElement(bytes: Uint8Array): DerElement {
  const element = elementAt(bytes, 0);
  if (element.bytes.length !== bytes.length) throw new DerError('trailing bytes');
  return element;
}

/** The elements of a constructed element. @throws DerError when its tag is another one */
export function readChildren(element: DerElement, tag: number): readonly DerElement[] {
  const { content } = expectTag(element, tag);
  const children: DerElement[] = [];
  for (let offset = 0; offset < content.length; ) {
    const child = elementAt(content, offset);
    children.push(child);
    offset += child.bytes.length;
  }
  return children;
}

/** @throws DerError when the element is absent or has another tag */
export function expectTag(element: DerElement | undefined, tag: number): DerElement {
  if (element?.tag !== tag) throw new DerError(`tag ${element?.tag} instead of ${tag}`);
  return element;
}

function elementAt(bytes: Uint8Array, start: number): DerElement {
  const tag = bytes[start];
  if (tag === undefined || (tag & 0x1f) === 0x1f) throw new DerError('tag');
  const { length, headerBytes } = lengthAt(bytes, start + 1);
  const from = start + 1 + headerBytes;
  const end = from + length;
  if (end > bytes.length) throw new DerError('truncated');
  return { tag, content: bytes.subarray(from, end), bytes: bytes.subarray(start, end) };
}

function lengthAt(bytes: Uint8Array, at: number): { readonly length: number; readonly headerBytes: number } {
  const first = bytes[at];
  if (first === undefined) throw new DerError('truncated');
  if (first < 0x80) return { length: first, headerBytes: 1 };
  const count = first & 0x7f;
  if (count === 0 || count > 3) throw new DerError('length');
  let length = 0;
  for (const byte of bytes.subarray(at + 1, at + 1 + count)) length = length * 256 + byte;
  const isMinimal = length >= (count === 1 ? 0x80 : 256 ** (count - 1));
  if (!isMinimal || at + 1 + count > bytes.length) throw new DerError('length');
  return { length, headerBytes: 1 + count };
}

/** A non-negative INTEGER below 2^31. @throws DerError */
export function readSmallInteger(element: DerElement): number {
  const content = readInteger(element);
  if (content.length > 4 || (content[0] ?? 0) >= 0x80) throw new DerError('integer');
  return content.reduce((value, byte) => value * 256 + byte, 0);
}

/** The content of an INTEGER in its shortest form. @throws DerError */
export function readInteger(element: DerElement): Uint8Array {
  const { content } = expectTag(element, TAGS.integer);
  const [first, second] = content;
  if (first === undefined) throw new DerError('integer');
  const isPadded =
    second !== undefined && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80));
  if (isPadded) throw new DerError('integer');
  return content;
}

/** @throws DerError */
export function readBoolean(element: DerElement): boolean {
  const { content } = expectTag(element, TAGS.boolean);
  if (content.length !== 1) throw new DerError('boolean');
  return content[0] !== 0;
}

/** The dotted form of an OBJECT IDENTIFIER. @throws DerError */
export function readObjectIdentifier(element: DerElement): string {
  const { content } = expectTag(element, TAGS.objectIdentifier);
  if (content.length === 0 || content.length > 64) throw new DerError('object identifier');
  const arcs: bigint[] = [];
  let arc = 0n;
  let isOpen = false;
  for (const byte of content) {
    if (!isOpen && byte === 0x80) throw new DerError('object identifier');
    arc = arc * 128n + BigInt(byte & 0x7f);
    isOpen = byte >= 0x80;
    if (isOpen) continue;
    arcs.push(arc);
    arc = 0n;
  }
  if (isOpen) throw new DerError('object identifier');
  const [head = 0n, ...rest] = arcs;
  const first = head < 40n ? 0n : head < 80n ? 1n : 2n;
  return [first, head - first * 40n, ...rest].join('.');
}

/**
 * The bits of a BIT STRING of named bits, the first one lowest, as in RFC 5280. At most 16 bits. @throws DerError
 */
export function readNamedBits(element: DerElement): number {
  const { content } = expectTag(element, TAGS.bitString);
  const [unused, ...bytes] = content;
  if (unused === undefined || unused > 7 || bytes.length > 2) throw new DerError('bit string');
  let bits = 0;
  bytes.forEach((byte, index) => {
    for (let bit = 0; bit < 8; bit += 1) if (byte & (0x80 >> bit)) bits |= 1 << (index * 8 + bit);
  });
  return bits;
}

/** Milliseconds since the epoch of a Time (RFC 5280, section 4.1.2.5): seconds, Zulu. @throws DerError */
export function readTime(element: DerElement): number {
  const text = Buffer.from(element.content).toString('latin1');
  const full = element.tag === TAGS.utcTime ? `${Number(text.slice(0, 2)) < 50 ? '20' : '19'}${text}` : text;
  const isTime = element.tag === TAGS.utcTime || element.tag === TAGS.generalizedTime;
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(full);
  if (!isTime || parts === null) throw new DerError('time');
  const [, year, month, day, hour, minute, second] = parts;
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const ms = Date.parse(iso);
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== iso) throw new DerError('time');
  return ms;
}

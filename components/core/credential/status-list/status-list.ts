import { AppError } from '../../errors/errors.ts';

/** Bits of one entry (draft-ietf-oauth-status-list-21 section 4.1). */
export const STATUS_BITS = [1, 2, 4, 8] as const;
export type StatusBits = (typeof STATUS_BITS)[number];

/** Registered values of entries (section 7.1); others are for applications and are no valid status here. */
export const STATUS_VALID = 0;
export const STATUS_INVALID = 1;
export const STATUS_SUSPENDED = 2;

/** Bytes of a list of entries, uncompressed. */
interface StatusList {
  readonly bits: StatusBits;
  readonly bytes: Uint8Array;
}

/** One entry that is to differ from 0. */
interface StatusEntry {
  readonly index: number;
  readonly value: number;
}

const BITS_OF_A_BYTE = 8;

function refuse(message: string): never {
  throw new AppError('invalid', 'INVALID_STATUS_LIST', message);
}

/** Number of entries of a list. */
export function statusCount({ bits, bytes }: StatusList): number {
  return bytes.length * (BITS_OF_A_BYTE / bits);
}

/** Where an entry is: its byte, and the distance of its bits from the least significant one. */
function placeOf(bits: StatusBits, index: number): { readonly at: number; readonly shift: number } {
  const perByte = BITS_OF_A_BYTE / bits;
  return { at: Math.floor(index / perByte), shift: (index % perByte) * bits };
}

function isIndexOf(count: number, index: number): boolean {
  return Number.isSafeInteger(index) && index >= 0 && index < count;
}

/**
 * Builds a status list (section 4.1): the first entry is in the least significant bits of the first byte. Entries that
 * are not named are 0.
 * @param count number of entries, which must fill bytes
 * @returns the list; compressing it with zlib is the caller's part
 * @throws AppError invalid INVALID_STATUS_LIST when the count leaves bits of a byte over, an index is outside or named
 * twice, or a value has more bits
 */
export function buildStatusList(bits: StatusBits, count: number, entries: Iterable<StatusEntry>): StatusList {
  const sizeBytes = (count * bits) / BITS_OF_A_BYTE;
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 1) refuse('The entries fill no bytes');
  const bytes = new Uint8Array(sizeBytes);
  for (const { index, value } of entries) {
    if (!isIndexOf(count, index)) refuse('An index is outside of the list');
    if (!Number.isInteger(value) || value < 0 || value >= 1 << bits) refuse('A value does not fit');
    const { at, shift } = placeOf(bits, index);
    const before = bytes[at] ?? 0;
    if (((before >> shift) & ((1 << bits) - 1)) !== 0) refuse('An index is named twice');
    bytes[at] = before | (value << shift);
  }
  return { bits, bytes };
}

/** The value of an entry; undefined when the list has no such entry, which a verifier refuses (section 8.3). */
export function findStatus(list: StatusList, index: number): number | undefined {
  if (!isIndexOf(statusCount(list), index)) return undefined;
  const { at, shift } = placeOf(list.bits, index);
  const byte = list.bytes[at];
  return byte === undefined ? undefined : (byte >> shift) & ((1 << list.bits) - 1);
}

/** Fewest entries of a W3C bitstring status list, for the privacy of holders (Bitstring Status List v1.0 section 3.1). */
export const MIN_BITSTRING_ENTRIES = 131_072;

/**
 * The W3C view of a status list (Bitstring Status List v1.0 section 3.3): one bit an entry, set where the entry has the
 * value, the first entry in the most significant bit of the first byte. Compressing it with gzip is the caller's part.
 * @throws AppError invalid INVALID_STATUS_LIST for fewer than MIN_BITSTRING_ENTRIES entries
 */
export function bitstringOf(list: StatusList, value: number): Uint8Array {
  const count = statusCount(list);
  if (count < MIN_BITSTRING_ENTRIES) refuse(`A bitstring has ${MIN_BITSTRING_ENTRIES} entries at least`);
  const bits = new Uint8Array(count / BITS_OF_A_BYTE);
  for (let index = 0; index < count; index += 1) {
    if (findStatus(list, index) !== value) continue;
    const at = index >> 3;
    bits[at] = (bits[at] ?? 0) | (0x80 >> (index & 7));
  }
  return bits;
}

/** Whether a bit of a W3C bitstring is set; undefined when it has no such bit. */
export function findBit(bits: Uint8Array, index: number): boolean | undefined {
  if (!isIndexOf(bits.length * BITS_OF_A_BYTE, index)) return undefined;
  return ((bits[Math.floor(index / BITS_OF_A_BYTE)] ?? 0) & (0x80 >> (index % BITS_OF_A_BYTE))) !== 0;
}

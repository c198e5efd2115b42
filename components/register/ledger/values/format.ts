import { AppError } from '#core/errors/errors.ts';

/**
 * The stored value of a docket: all of its transactions in docket order, in one byte string. Numbers are unsigned,
 * big-endian.
 *
 *     value = version (1 byte) ‖ count (4) ‖ count × entry (77) ‖ count × body
 *     entry = offset of the body in the value (4) ‖ size of the record (4) ‖ size of the payload (4)
 *             ‖ payload hash form (1) ‖ transaction id (32) ‖ leaf (32)
 *     body  = record ‖ payload, exactly as sealed
 *
 * Bodies follow each other without gaps. Entries have a fixed size, so one transaction, the ids or the leaves are read
 * without the rest of the value.
 */
const VALUE_VERSION = 1;
export const HEADER_BYTES = 5;
export const ENTRY_BYTES = 77;
const idBytes = 32;

/** Offsets in an entry. */
const at = { body: 0, record: 4, payload: 8, form: 12, id: 13, leaf: 45 } as const;

/** Offset of the transaction id in an entry. */
export const ID_OFFSET = at.id;

/** A field of PostgreSQL has less than 1 GiB. */
const maxValueBytes = 0x3fff_ffff;

/** Positions of transactions are below this. */
export const MOST_ENTRIES = Math.floor(maxValueBytes / ENTRY_BYTES);

/** Payload hash forms by their code. */
const forms = ['jcs', 'compact'] as const;

/** A transaction as a value holds it. */
export interface ValueTransaction {
  /** 64 lower-case hex digits */
  readonly txId: string;
  readonly leaf: Uint8Array;
  readonly payloadHashForm: string;
  readonly record: Uint8Array;
  readonly payload: Uint8Array;
}

/** The entry of one transaction. */
export interface ValueEntry {
  readonly txId: string;
  readonly leaf: Buffer;
  readonly payloadHashForm: string;
  /** of the body in the value, in bytes */
  readonly offset: number;
  readonly recordBytes: number;
  readonly payloadBytes: number;
}

/** A transaction that was read from a value. */
export interface StoredTransaction {
  readonly txId: string;
  readonly leaf: Buffer;
  readonly payloadHashForm: string;
  readonly record: Buffer;
  readonly payload: Buffer;
}

function corrupt(what: string): AppError {
  return new AppError(
    'internal',
    'DOCKET_VALUE_INVALID',
    `The stored value of a docket is invalid: ${what}.`,
  );
}

function formCode(form: string): number {
  const code = (forms as readonly string[]).indexOf(form);
  if (code < 0) throw corrupt(`the payload hash form ${form} has no code`);
  return code;
}

function writeEntry(target: Buffer, start: number, offset: number, one: ValueTransaction): void {
  target.writeUInt32BE(offset, start + at.body);
  target.writeUInt32BE(one.record.length, start + at.record);
  target.writeUInt32BE(one.payload.length, start + at.payload);
  target.writeUInt8(formCode(one.payloadHashForm), start + at.form);
  const idWritten = target.write(one.txId, start + at.id, idBytes, 'hex');
  if (idWritten !== idBytes || one.leaf.length !== idBytes) throw corrupt('an id or a leaf has another size');
  target.set(one.leaf, start + at.leaf);
}

/**
 * Encodes the value of a docket.
 * @throws AppError internal DOCKET_VALUE_INVALID for a transaction that a value cannot hold
 */
export function encodeValue(transactions: readonly ValueTransaction[]): Buffer {
  const indexBytes = HEADER_BYTES + transactions.length * ENTRY_BYTES;
  const size = transactions.reduce((sum, one) => sum + one.record.length + one.payload.length, indexBytes);
  if (size > maxValueBytes) throw corrupt(`it would have ${size} bytes`);
  const target = Buffer.allocUnsafe(size);
  target.writeUInt8(VALUE_VERSION, 0);
  target.writeUInt32BE(transactions.length, 1);
  let offset = indexBytes;
  for (const [index, one] of transactions.entries()) {
    writeEntry(target, HEADER_BYTES + index * ENTRY_BYTES, offset, one);
    target.set(one.record, offset);
    target.set(one.payload, offset + one.record.length);
    offset += one.record.length + one.payload.length;
  }
  return target;
}

/**
 * Reads one entry.
 * @throws AppError internal DOCKET_VALUE_INVALID
 */
export function parseEntry(entry: Buffer): ValueEntry {
  if (entry.length !== ENTRY_BYTES) throw corrupt('an entry is incomplete');
  const payloadHashForm = forms[entry.readUInt8(at.form)];
  if (payloadHashForm === undefined) throw corrupt('a payload hash form is unknown');
  const offset = entry.readUInt32BE(at.body);
  const recordBytes = entry.readUInt32BE(at.record);
  const payloadBytes = entry.readUInt32BE(at.payload);
  if (offset + recordBytes + payloadBytes > maxValueBytes) throw corrupt('a body is out of bounds');
  return {
    txId: entry.toString('hex', at.id, at.leaf),
    leaf: entry.subarray(at.leaf, ENTRY_BYTES),
    payloadHashForm,
    offset,
    recordBytes,
    payloadBytes,
  };
}

/**
 * Reads consecutive entries.
 * @throws AppError internal DOCKET_VALUE_INVALID also when their bodies do not follow each other
 */
export function parseEntries(bytes: Buffer): ValueEntry[] {
  if (bytes.length % ENTRY_BYTES !== 0) throw corrupt('an entry is incomplete');
  const entries: ValueEntry[] = [];
  for (let start = 0; start < bytes.length; start += ENTRY_BYTES) {
    const entry = parseEntry(bytes.subarray(start, start + ENTRY_BYTES));
    const previous = entries.at(-1);
    if (previous !== undefined && endOf(previous) !== entry.offset) throw corrupt('there is a gap');
    entries.push(entry);
  }
  return entries;
}

/** Offset behind the body of an entry. */
export function endOf({ offset, recordBytes, payloadBytes }: ValueEntry): number {
  return offset + recordBytes + payloadBytes;
}

/**
 * Reads the header of a value: the number of its transactions.
 * @throws AppError internal DOCKET_VALUE_INVALID also for another version
 */
export function parseHeader(header: Buffer): number {
  if (header.length < HEADER_BYTES) throw corrupt('the header is incomplete');
  const version = header.readUInt8(0);
  if (version !== VALUE_VERSION) throw corrupt(`version ${version} is unknown`);
  return header.readUInt32BE(1);
}

/**
 * Splits a body, or several in a row, that begin at `from` in the value.
 * @throws AppError internal DOCKET_VALUE_INVALID for bytes of another size
 */
export function splitBodies(
  entries: readonly ValueEntry[],
  bodies: Buffer,
  from: number,
): StoredTransaction[] {
  const last = entries.at(-1);
  if (last !== undefined && endOf(last) - from !== bodies.length) throw corrupt('a body is incomplete');
  return entries.map(({ txId, leaf, payloadHashForm, offset, recordBytes, payloadBytes }) => {
    const start = offset - from;
    const middle = start + recordBytes;
    if (start < 0) throw corrupt('a body is out of bounds');
    return {
      txId,
      leaf,
      payloadHashForm,
      record: bodies.subarray(start, middle),
      payload: bodies.subarray(middle, middle + payloadBytes),
    };
  });
}

/**
 * Reads a whole value.
 * @throws AppError internal DOCKET_VALUE_INVALID for anything that `encodeValue` does not write
 */
export function parseValue(value: Buffer): StoredTransaction[] {
  const count = parseHeader(value);
  const indexBytes = HEADER_BYTES + count * ENTRY_BYTES;
  if (indexBytes > value.length) throw corrupt('entries are missing');
  const entries = parseEntries(value.subarray(HEADER_BYTES, indexBytes));
  const first = entries[0]?.offset ?? indexBytes;
  if (first !== indexBytes) throw corrupt('there is a gap');
  if (entries.length === 0 && value.length !== indexBytes) throw corrupt('bytes follow its end');
  return splitBodies(entries, value.subarray(indexBytes), indexBytes);
}

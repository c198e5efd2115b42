import { crc32 } from 'node:zlib';

/**
 * The binary format of the validator's log. A segment is a header and batches; a batch is the unit of one forced write:
 *
 *   segment  "CHJL" version:u32 segment:u64
 *   batch    "BtCh" length:u32 crc32:u32 sequence:u64 entries     (crc32 covers sequence and entries)
 *   entry    length:u32 type:u8 body
 *
 * Integers are little-endian. A batch is written only after the previous one is on disk. An invalid batch followed by a
 * valid one is therefore damage, and an invalid batch at the end is a write that a crash cut short.
 */
export interface Entry {
  readonly type: number;
  readonly body: Uint8Array;
}

export interface Batch {
  readonly sequence: number;
  readonly entries: Entry[];
}

interface Scan {
  readonly batches: Batch[];
  /** Length of the valid prefix. */
  readonly end: number;
  readonly state: 'whole' | 'torn' | 'damaged';
}

export const segmentHeaderBytes = 16;
const batchHeaderBytes = 20;
const entryHeaderBytes = 5;
const segmentMagic = Buffer.from('CHJL');
const batchMagic = Buffer.from('BtCh');
const version = 1;

export function encodeSegmentHeader(segment: number): Buffer {
  const header = Buffer.alloc(segmentHeaderBytes);
  segmentMagic.copy(header);
  header.writeUInt32LE(version, 4);
  header.writeBigUInt64LE(BigInt(segment), 8);
  return header;
}

function entryBytes(entry: Entry): number {
  return entryHeaderBytes + entry.body.length;
}

export function encodeBatch(sequence: number, entries: readonly Entry[]): Buffer {
  let length = 0;
  for (const entry of entries) length += entryBytes(entry);
  const batch = Buffer.allocUnsafe(batchHeaderBytes + length);
  batchMagic.copy(batch);
  batch.writeUInt32LE(length, 4);
  batch.writeBigUInt64LE(BigInt(sequence), 12);
  let at = batchHeaderBytes;
  for (const entry of entries) {
    at = batch.writeUInt32LE(entry.body.length, at);
    at = batch.writeUInt8(entry.type, at);
    batch.set(entry.body, at);
    at += entry.body.length;
  }
  batch.writeUInt32LE(crc32(batch.subarray(12)), 8);
  return batch;
}

/** Reads a segment up to its end or its first invalid batch. Entry bodies are views of the given bytes. */
export function scanSegment(bytes: Buffer, segment: number): Scan {
  if (bytes.length < segmentHeaderBytes) return { batches: [], end: 0, state: 'torn' };
  if (!bytes.subarray(0, segmentHeaderBytes).equals(encodeSegmentHeader(segment))) {
    return { batches: [], end: 0, state: 'damaged' };
  }
  const batches: Batch[] = [];
  let end = segmentHeaderBytes;
  while (end < bytes.length) {
    const batch = readBatch(bytes, end);
    if (batch === undefined) {
      const state = hasBatchAfter(bytes, end + 1) ? 'damaged' : 'torn';
      return { batches, end, state };
    }
    batches.push(batch.batch);
    end = batch.end;
  }
  return { batches, end, state: 'whole' };
}

function readBatch(bytes: Buffer, at: number): { batch: Batch; end: number } | undefined {
  if (at + batchHeaderBytes > bytes.length) return undefined;
  if (!bytes.subarray(at, at + 4).equals(batchMagic)) return undefined;
  const end = at + batchHeaderBytes + bytes.readUInt32LE(at + 4);
  if (end > bytes.length) return undefined;
  if (crc32(bytes.subarray(at + 12, end)) !== bytes.readUInt32LE(at + 8)) return undefined;
  const entries = readEntries(bytes.subarray(at + batchHeaderBytes, end));
  if (entries === undefined) return undefined;
  return { batch: { sequence: Number(bytes.readBigUInt64LE(at + 12)), entries }, end };
}

function readEntries(bytes: Buffer): Entry[] | undefined {
  const entries: Entry[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (at + entryHeaderBytes > bytes.length) return undefined;
    const start = at + entryHeaderBytes;
    const end = start + bytes.readUInt32LE(at);
    if (end > bytes.length) return undefined;
    entries.push({ type: bytes.readUInt8(at + 4), body: bytes.subarray(start, end) });
    at = end;
  }
  return entries;
}

function hasBatchAfter(bytes: Buffer, from: number): boolean {
  let at = bytes.indexOf(batchMagic, from);
  while (at >= 0) {
    if (readBatch(bytes, at) !== undefined) return true;
    at = bytes.indexOf(batchMagic, at + 1);
  }
  return false;
}

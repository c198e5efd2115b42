import { invocationOf } from './protocol.ts';
import type { Signal } from './signal.ts';

/** A signal as the bytes of its record. */
export interface Frame {
  readonly bytes: Buffer;
  /** What a slow connection gets in its place. */
  readonly instead: Buffer | undefined;
}

/** Records that are written together. */
export interface Batch {
  readonly bytes: Buffer;
  readonly frames: readonly Frame[];
}

/** Encodes the signals of one page; each record is encoded once, however many connections get it. */
export function createEncoder(): (signal: Signal) => Frame {
  const encoded = new Map<Signal, Buffer>();
  const bytesOf = (signal: Signal): Buffer => {
    const bytes = encoded.get(signal) ?? invocationOf(signal.target, signal.arguments);
    encoded.set(signal, bytes);
    return bytes;
  };
  return (signal) => ({
    bytes: bytesOf(signal),
    instead: signal.instead === undefined ? undefined : bytesOf(signal.instead),
  });
}

/** Joins records up to a size; a larger record is a batch of its own. */
export function batchesOf(frames: readonly Frame[], limitBytes: number): Batch[] {
  const batches: Batch[] = [];
  let open: Frame[] = [];
  let bytes = 0;
  const finish = () => {
    if (open.length > 0) batches.push({ bytes: joined(open), frames: open });
    open = [];
    bytes = 0;
  };
  for (const frame of frames) {
    if (bytes + frame.bytes.length > limitBytes) finish();
    open.push(frame);
    bytes += frame.bytes.length;
  }
  finish();
  return batches;
}

function joined(frames: readonly Frame[]): Buffer {
  const [first] = frames;
  return frames.length === 1 && first !== undefined
    ? first.bytes
    : Buffer.concat(frames.map(({ bytes }) => bytes));
}

import { randomBytes } from 'node:crypto';

/** Ends every record of the SignalR hub protocol. */
const separator = 0x1e;
const shortest = 2;

/** A text message of a client as one masked WebSocket frame (RFC 6455, section 5.2). */
export function clientFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  const mask = randomBytes(4);
  for (const [at, byte] of payload.entries()) payload[at] = byte ^ (mask[at % 4] ?? 0);
  const length =
    payload.length < 126
      ? Buffer.from([0x80 | payload.length])
      : Buffer.from([0x80 | 126, payload.length >> 8, payload.length & 0xff]);
  return Buffer.concat([Buffer.from([0x81]), length, mask, payload]);
}

/** What is counted: records of the SignalR hub protocol, or messages, which are records of other protocols. */
export type Unit = 'records' | 'messages';

/**
 * Reads the unmasked frames of a server and counts the records in them, without keeping their bytes: a thousand
 * connections of one process must cost less than the server that is measured.
 */
export class RecordCounter {
  readonly #unit: Unit;
  #left = 0;
  #head: Buffer = Buffer.alloc(0);

  constructor(unit: Unit = 'records') {
    this.#unit = unit;
  }

  /** Number of records that end in these bytes. `take` gets each piece of a payload; `isEnd` at the end of a message. */
  push(bytes: Buffer, take?: (piece: Buffer, isEnd: boolean) => void): number {
    let rest = this.#head.length === 0 ? bytes : Buffer.concat([this.#head, bytes]);
    this.#head = Buffer.alloc(0);
    let records = 0;
    while (rest.length > 0) {
      if (this.#left === 0) {
        const headBytes = headLength(rest);
        if (rest.length < headBytes) {
          this.#head = Buffer.from(rest);
          break;
        }
        this.#left = payloadLength(rest);
        rest = rest.subarray(headBytes);
      }
      const piece = rest.subarray(0, this.#left);
      this.#left -= piece.length;
      records += this.#unit === 'records' ? separatorsIn(piece) : Number(this.#left === 0);
      take?.(piece, this.#left === 0);
      rest = rest.subarray(piece.length);
    }
    return records;
  }
}

function headLength(bytes: Buffer): number {
  if (bytes.length < shortest) return shortest;
  const length = (bytes[1] ?? 0) & 0x7f;
  if (length === 127) return 10;
  return length === 126 ? 4 : shortest;
}

function payloadLength(bytes: Buffer): number {
  const length = (bytes[1] ?? 0) & 0x7f;
  if (length === 127) return Number(bytes.readBigUInt64BE(2));
  return length === 126 ? bytes.readUInt16BE(2) : length;
}

function separatorsIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(separator); at !== -1; at = bytes.indexOf(separator, at + 1)) count += 1;
  return count;
}

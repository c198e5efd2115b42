import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';

/** Ends every record of the SignalR hub protocol, JSON. */
const separator = 0x1e;
const noBytes = Buffer.alloc(0);

/** The client broke the protocol: the connection is closed with this text. */
function protocolError(message: string): AppError {
  return new AppError('invalid', 'HUB_PROTOCOL', message);
}

/** Joins the pieces of a byte stream and splits them into records. */
export class RecordSplitter {
  readonly #limitBytes: number;
  /** Copies of the pieces of an unfinished record, whose number and size the client chooses. */
  #begun = noBytes;
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /**
   * The records that a piece completes, without their separators.
   *
   * Errors: invalid/HUB_PROTOCOL for a record over the limit or with invalid UTF-8.
   */
  *push(piece: Buffer): Generator<string> {
    for (let from = 0; from < piece.length; ) {
      const end = piece.indexOf(separator, from);
      const part = piece.subarray(from, end === -1 ? piece.length : end);
      if (this.#bytes + part.length > this.#limitBytes) {
        throw protocolError(`A record exceeds ${this.#limitBytes} bytes.`);
      }
      if (end === -1) {
        this.#keep(part);
        return;
      }
      yield this.#take(part);
      from = end + 1;
    }
  }

  #keep(part: Buffer): void {
    const bytes = this.#bytes + part.length;
    if (bytes > this.#begun.length) {
      const size = Math.min(Math.max(bytes, 2 * this.#begun.length), this.#limitBytes);
      const larger = Buffer.allocUnsafeSlow(size);
      this.#begun.copy(larger, 0, 0, this.#bytes);
      this.#begun = larger;
    }
    part.copy(this.#begun, this.#bytes);
    this.#bytes = bytes;
  }

  #take(last: Buffer): string {
    let record = last;
    if (this.#bytes > 0) {
      this.#keep(last);
      record = this.#begun.subarray(0, this.#bytes);
    }
    this.#begun = noBytes;
    this.#bytes = 0;
    if (!isUtf8(record)) throw protocolError('A record is not valid UTF-8.');
    return record.toString('utf8');
  }
}

/** A record with its separator. */
export function recordOf(message: object): Buffer {
  return Buffer.from(`${JSON.stringify(message)}\u001e`, 'utf8');
}

export const pingRecord = { type: 6 } as const;

/** How an invocation ended; one that streamed its results has no other one. */
type Outcome = { readonly result: unknown } | { readonly error: string } | Readonly<Record<never, never>>;

/** The record of a completed invocation. */
export function completionOf(invocationId: string, outcome: Outcome): Buffer {
  return recordOf({ type: 3, invocationId, ...outcome });
}

/** The record of one result of an invocation that streams them. */
export function streamItemOf(invocationId: string, item: unknown): Buffer {
  return recordOf({ type: 2, invocationId, item });
}

/** The record that ends a connection; the client reconnects by itself when it may. */
export function closeRecord(error: string | undefined, allowReconnect: boolean): Buffer {
  return recordOf({
    type: 7,
    ...(error !== undefined && { error }),
    ...(allowReconnect && { allowReconnect }),
  });
}

/** The record of a signal or an event. */
export function invocationOf(target: string, args: readonly unknown[]): Buffer {
  return recordOf({ type: 1, target, arguments: args });
}

const handshakeSchema = z.object({ protocol: z.string(), version: z.number() });

/** Judges the first record of a client; returns the text of its refusal. */
export function judgeHandshake(text: string): string | undefined {
  const parsed = handshakeSchema.safeParse(parseJson(text));
  if (!parsed.success) return 'The handshake is malformed.';
  const { protocol, version } = parsed.data;
  if (protocol !== 'json') return 'Only the protocol json is supported.';
  return version === 1 ? undefined : 'Only version 1 of the protocol json is supported.';
}

/** A record of a client, as far as a hub acts on it. */
export type ClientMessage =
  | {
      readonly kind: 'invocation';
      readonly target: string;
      readonly arguments: readonly unknown[];
      /** Absent when the client wants no answer. */
      readonly invocationId: string | undefined;
    }
  /** The invocation of a method whose results the client takes one by one. */
  | {
      readonly kind: 'stream';
      readonly target: string;
      readonly arguments: readonly unknown[];
      readonly invocationId: string;
    }
  /** The client wants no further results of a stream. */
  | { readonly kind: 'cancellation'; readonly invocationId: string }
  | { readonly kind: 'ping' }
  | { readonly kind: 'close' }
  /** Completions, and types of later versions. */
  | { readonly kind: 'other' };

const typedSchema = z.object({ type: z.int() });
const invocationSchema = z.object({
  target: z.string().min(1).max(128),
  arguments: z.array(z.unknown()).max(16),
  invocationId: z.string().min(1).max(128).nullish(),
});
const streamSchema = invocationSchema.extend({ invocationId: z.string().min(1).max(128) });
const cancellationSchema = streamSchema.pick({ invocationId: true });

/**
 * Parses a record after the handshake.
 *
 * Errors: invalid/HUB_PROTOCOL.
 */
export function parseMessage(text: string): ClientMessage {
  const json = parseJson(text);
  const typed = typedSchema.safeParse(json);
  if (!typed.success) throw protocolError('A record is malformed.');
  switch (typed.data.type) {
    case 1: {
      const invocation = invocationSchema.safeParse(json);
      if (!invocation.success) throw protocolError('An invocation is malformed.');
      const { target, arguments: args, invocationId } = invocation.data;
      return { kind: 'invocation', target, arguments: args, invocationId: invocationId ?? undefined };
    }
    case 4: {
      const invocation = streamSchema.safeParse(json);
      if (!invocation.success) throw protocolError('An invocation is malformed.');
      const { target, arguments: args, invocationId } = invocation.data;
      return { kind: 'stream', target, arguments: args, invocationId };
    }
    case 5: {
      const cancellation = cancellationSchema.safeParse(json);
      if (!cancellation.success) throw protocolError('A cancellation is malformed.');
      return { kind: 'cancellation', invocationId: cancellation.data.invocationId };
    }
    case 6:
      return { kind: 'ping' };
    case 7:
      return { kind: 'close' };
    default:
      return { kind: 'other' };
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

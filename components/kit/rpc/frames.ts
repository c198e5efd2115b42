import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import type { WireStatus } from './status.ts';

/** One unary call on a shared stream: `chancery.rpc.v1.Call`. */
export interface CallFrame {
  readonly number: number;
  /** `/package.Service/Method` */
  readonly method: string;
  readonly request: Buffer;
  /** Milliseconds left; 0 without a deadline. */
  readonly timeoutMs: number;
  /** Undefined when it is that of the last call of the stream that had one. */
  readonly authorization: string | undefined;
  readonly subjectToken: string | undefined;
  readonly traceparent: string | undefined;
}

/** One message of a client: `chancery.rpc.v1.ExchangeRequest`. */
export interface CallBatch {
  readonly calls: readonly CallFrame[];
  /** Numbers of calls of earlier batches. */
  readonly cancelled: readonly number[];
}

/** The outcome of a call, or a part of its response: `chancery.rpc.v1.Answer`. */
export interface AnswerFrame {
  readonly number: number;
  readonly response: Buffer;
  /** Whether further parts follow. */
  readonly isPartial: boolean;
  readonly status: WireStatus | undefined;
}

/** One message of a server: `chancery.rpc.v1.ExchangeResponse`. */
interface AnswerBatch {
  readonly answers: readonly AnswerFrame[];
  /** Whether the server accepts no further call on the stream. */
  readonly isDraining: boolean;
}

/**
 * Maximum number of fields of one message: what the calls and cancellations of a full stream need, with a margin. A field
 * takes two bytes on the wire, so that a message could hold half a million.
 */
const MOST_FIELDS = 32_768;

// Keys of the wire format: field number << 3 | wire type (0 varint, 2 length-delimited).
const CALLS = 0x0a;
const CANCELLED = { one: 0x10, packed: 0x12 } as const;
const CALL = {
  number: 0x08,
  method: 0x12,
  request: 0x1a,
  timeoutMs: 0x20,
  authorization: 0x2a,
  subjectToken: 0x32,
  traceparent: 0x3a,
} as const;
const ANSWERS = 0x0a;
const DRAINING = 0x10;
const ANSWER = { number: 0x08, response: 0x12, partial: 0x18, status: 0x22 } as const;
const STATUS = { code: 0x08, message: 0x12, detail: 0x1a } as const;

/**
 * Encodes batches in the format of `multiplex.proto`. The code is written by hand because the reflection of protobuf-es
 * takes as long for a frame as for a small message within it. The buffer is reused; each result is a copy.
 */
export class FrameEncoder {
  readonly #writer = new BinaryWriter();

  calls({ calls, cancelled }: CallBatch): Buffer {
    const writer = this.#writer;
    for (const call of calls) {
      writer.uint32(CALLS).fork();
      writer.uint32(CALL.number).uint32(call.number).uint32(CALL.method).string(call.method);
      if (call.request.length > 0) writer.uint32(CALL.request).bytes(call.request);
      if (call.timeoutMs > 0) writer.uint32(CALL.timeoutMs).uint32(call.timeoutMs);
      if (call.authorization !== undefined) writer.uint32(CALL.authorization).string(call.authorization);
      if (call.subjectToken !== undefined) writer.uint32(CALL.subjectToken).string(call.subjectToken);
      if (call.traceparent !== undefined) writer.uint32(CALL.traceparent).string(call.traceparent);
      writer.join();
    }
    if (cancelled.length > 0) {
      writer.uint32(CANCELLED.packed).fork();
      for (const number of cancelled) writer.uint32(number);
      writer.join();
    }
    return this.#finish();
  }

  answers({ answers, isDraining }: AnswerBatch): Buffer {
    const writer = this.#writer;
    for (const { number, response, isPartial, status } of answers) {
      writer.uint32(ANSWERS).fork();
      writer.uint32(ANSWER.number).uint32(number);
      if (response.length > 0) writer.uint32(ANSWER.response).bytes(response);
      if (isPartial) writer.uint32(ANSWER.partial).bool(true);
      if (status !== undefined) {
        writer.uint32(ANSWER.status).fork();
        writer.uint32(STATUS.code).uint32(status.code).uint32(STATUS.message).string(status.details);
        if (status.detail !== undefined) writer.uint32(STATUS.detail).bytes(status.detail);
        writer.join();
      }
      writer.join();
    }
    if (isDraining) writer.uint32(DRAINING).bool(true);
    return this.#finish();
  }

  #finish(): Buffer {
    const bytes = this.#writer.finish();
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
}

/** Throws an Error for bytes that are no ExchangeRequest or have too many fields. */
export function decodeCalls(bytes: Buffer): CallBatch {
  const reader = new FieldReader(bytes);
  const calls: Mutable<CallFrame>[] = [];
  const cancelled: number[] = [];
  while (reader.isWithin(bytes.length)) {
    const key = reader.key();
    if (key === CALLS) calls.push(readCall(reader, reader.end()));
    else if (key === CANCELLED.one) cancelled.push(reader.uint32());
    else if (key === CANCELLED.packed) {
      const end = reader.end();
      while (reader.isWithin(end)) cancelled.push(reader.element());
    } else reader.skip(key);
  }
  if (calls.length > 1) for (const call of calls) call.request = owned(call.request);
  return { calls, cancelled };
}

/** Throws an Error for bytes that are no ExchangeResponse or have too many fields. */
export function decodeAnswers(bytes: Buffer): AnswerBatch {
  const reader = new FieldReader(bytes);
  const answers: Mutable<AnswerFrame>[] = [];
  let isDraining = false;
  while (reader.isWithin(bytes.length)) {
    const key = reader.key();
    if (key === ANSWERS) answers.push(readAnswer(reader, reader.end()));
    else if (key === DRAINING) isDraining = reader.bool();
    else reader.skip(key);
  }
  if (answers.length > 1) for (const answer of answers) answer.response = owned(answer.response);
  return { answers, isDraining };
}

/** BinaryReader with a bound for the number of fields. */
class FieldReader {
  readonly #reader: BinaryReader;
  #left = MOST_FIELDS;

  constructor(bytes: Uint8Array) {
    this.#reader = new BinaryReader(bytes);
  }

  /** Whether the next field begins before `end`; throws when the last one was longer than its message. */
  isWithin(end: number): boolean {
    if (this.#reader.pos > end) throw new RangeError('a field is longer than its message');
    return this.#reader.pos < end;
  }

  key(): number {
    this.#count();
    return this.#reader.uint32();
  }

  /** A number of a packed list. */
  element(): number {
    this.#count();
    return this.#reader.uint32();
  }

  /** Where a length-delimited field that begins here ends. */
  end(): number {
    const length = this.#reader.uint32();
    const end = this.#reader.pos + length;
    if (end > this.#reader.len) throw new RangeError('a field is longer than its message');
    return end;
  }

  uint32(): number {
    return this.#reader.uint32();
  }

  bool(): boolean {
    return this.#reader.bool();
  }

  /** A view of the message. */
  bytes(): Buffer {
    const { buffer, byteOffset, byteLength } = this.#reader.bytes();
    return Buffer.from(buffer, byteOffset, byteLength);
  }

  string(): string {
    return this.#reader.string(true);
  }

  skip(key: number): void {
    this.#reader.skip(key & 7, key >>> 3);
  }

  #count(): void {
    this.#left -= 1;
    if (this.#left < 0) throw new RangeError('too many fields');
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const NO_BYTES = Buffer.alloc(0);

function readCall(reader: FieldReader, end: number): Mutable<CallFrame> {
  const call: Mutable<CallFrame> = {
    number: 0,
    method: '',
    request: NO_BYTES,
    timeoutMs: 0,
    authorization: undefined,
    subjectToken: undefined,
    traceparent: undefined,
  };
  while (reader.isWithin(end)) {
    const key = reader.key();
    if (key === CALL.number) call.number = reader.uint32();
    else if (key === CALL.request) call.request = reader.bytes();
    else if (key === CALL.timeoutMs) call.timeoutMs = reader.uint32();
    else readCallText(reader, key, call);
  }
  return call;
}

function readCallText(reader: FieldReader, key: number, call: Mutable<CallFrame>): void {
  switch (key) {
    case CALL.method:
      call.method = reader.string();
      break;
    case CALL.authorization:
      call.authorization = reader.string();
      break;
    case CALL.subjectToken:
      call.subjectToken = reader.string();
      break;
    case CALL.traceparent:
      call.traceparent = reader.string();
      break;
    default:
      reader.skip(key);
  }
}

function readAnswer(reader: FieldReader, end: number): Mutable<AnswerFrame> {
  const answer: Mutable<AnswerFrame> = { number: 0, response: NO_BYTES, isPartial: false, status: undefined };
  while (reader.isWithin(end)) {
    const key = reader.key();
    if (key === ANSWER.number) answer.number = reader.uint32();
    else if (key === ANSWER.response) answer.response = reader.bytes();
    else if (key === ANSWER.partial) answer.isPartial = reader.bool();
    else if (key === ANSWER.status) answer.status = readStatus(reader, reader.end());
    else reader.skip(key);
  }
  return answer;
}

function readStatus(reader: FieldReader, end: number): WireStatus {
  let code = 0;
  let details = '';
  let detail: Buffer | undefined;
  while (reader.isWithin(end)) {
    const key = reader.key();
    if (key === STATUS.code) code = reader.uint32();
    else if (key === STATUS.message) details = reader.string();
    else if (key === STATUS.detail) detail = Buffer.from(reader.bytes());
    else reader.skip(key);
  }
  return { code, details, detail };
}

/** What is decoded from a request or response keeps its bytes; without a copy a small record would keep the whole batch. */
function owned(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}

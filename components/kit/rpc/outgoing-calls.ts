import { create } from '@bufbuild/protobuf';
import { type Client, type ClientDuplexStream, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { AppError, genericCode } from '#core/errors/errors.ts';
import {
  type Answer,
  type Call,
  CallSchema,
  MultiplexService,
  type Status,
} from '#protos/gen/chancery/rpc/v1/multiplex_pb.js';
import { timerLimitMs } from './call-watch.ts';
import { undecodable } from './client-stream.ts';
import { CoalescingWriter } from './coalescing-writer.ts';
import { Undecodable } from './decode.ts';
import { decodeAnswers, encodeCalls } from './frames.ts';
import { errorOf, fromStatus, type WireStatus } from './status.ts';
import type { UnaryCall } from './unary-call.ts';
import { asIs, BATCH_BYTES, MAX_CONCURRENT_STREAMS, MESSAGE_LIMIT_BYTES, methodPath } from './wire.ts';

/** The server does not know the service of the stream: it has not seen the call. */
export class NotServed extends Error {}

interface CallInFlight {
  readonly number: number;
  readonly call: UnaryCall;
  readonly sizeBytes: number;
  isSent: boolean;
  /** Parts of the response so far. */
  readonly parts: Uint8Array[];
  partBytes: number;
  /** Ends the call, once: with its response or with an error. */
  readonly settle: (outcome: Uint8Array | Error) => void;
}

/** Bytes of calls that wait to be sent, above which another call is carried on its own. */
const mostQueuedBytes = 4 * 1024 * 1024;
const highestNumber = 0xffff_ffff;
const exchange = methodPath(MultiplexService.method.exchange);

/** The unary calls of one connection on one stream. Calls in flight fail when the stream breaks; none is repeated. */
export class OutgoingCalls {
  readonly #stream: ClientDuplexStream<Buffer, Buffer>;
  readonly #writer: CoalescingWriter;
  readonly #inFlight = new Map<number, CallInFlight>();
  readonly #onNotServed: () => void;
  #queue: CallInFlight[] = [];
  #cancelled: number[] = [];
  #queuedBytes = 0;
  #lastNumber = 0;
  /** The value that the server knows. */
  #authorization: string | undefined;
  /** Resolves the first write: until then nothing is known about the server, and the stream holds one message. */
  #whenServed: (() => void) | undefined;
  #isServed = false;
  #isOpen = true;
  #hasEnded = false;
  #failure: AppError | NotServed | undefined;

  constructor(client: Client, onNotServed: () => void) {
    this.#onNotServed = onNotServed;
    this.#stream = client.makeBidiStreamRequest(exchange, asIs, asIs, new Metadata(), {});
    this.#writer = new CoalescingWriter({
      next: () => this.#nextMessage(),
      write: (message, written) => this.#write(message, written),
    });
    this.#stream.once('metadata', () => this.#served());
    this.#stream.on('data', (message: Buffer) => this.#receive(message));
    this.#stream.on('error', (error: ServiceError) => this.#fail(error));
    this.#stream.once('status', () => {
      this.#isOpen = false;
    });
    // Answers that arrived before the end are delivered before it.
    this.#stream.once('end', () => this.#end());
  }

  /** Whether new calls may use the stream. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether there is room for the call, and it is small enough. */
  takes(call: UnaryCall): boolean {
    const sizeBytes = sizeOf(call);
    return (
      this.#isOpen &&
      sizeBytes <= BATCH_BYTES.request &&
      this.#queuedBytes + sizeBytes <= mostQueuedBytes &&
      this.#inFlight.size < MAX_CONCURRENT_STREAMS
    );
  }

  /** Resolves with the response. Errors: those of the server, timeout, unavailable; NotServed. */
  call(call: UnaryCall): Promise<Uint8Array> {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const number = this.#nextNumber();
    const { deadline, signal } = call;
    const leftMs = deadline === undefined ? timerLimitMs : deadline - Date.now();
    const giveUp = (error: AppError) => {
      if (inFlight.isSent) this.#cancelled.push(number);
      inFlight.settle(error);
      this.#writer.notify();
    };
    const onAbort = () => giveUp(callAborted());
    const timer = leftMs < timerLimitMs ? setTimeout(() => giveUp(late()), Math.max(0, leftMs)) : undefined;
    const settle = (outcome: Uint8Array | Error) => {
      if (!this.#inFlight.delete(number)) return;
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    };
    const sizeBytes = sizeOf(call);
    const inFlight = { number, call, sizeBytes, isSent: false, parts: [], partBytes: 0, settle };
    this.#inFlight.set(number, inFlight);
    this.#queue.push(inFlight);
    this.#queuedBytes += sizeBytes;
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    else this.#writer.notify();
    return promise;
  }

  /** Ends the stream at once. */
  close(): void {
    this.#isOpen = false;
    this.#stream.cancel();
  }

  #nextNumber(): number {
    do this.#lastNumber = this.#lastNumber === highestNumber ? 1 : this.#lastNumber + 1;
    while (this.#inFlight.has(this.#lastNumber));
    return this.#lastNumber;
  }

  #nextMessage(): Buffer | undefined {
    if (this.#hasEnded) return undefined;
    const calls = this.#takeCalls();
    const cancelled = this.#cancelled;
    this.#cancelled = [];
    if (calls.length > 0 || cancelled.length > 0) return encodeCalls({ calls, cancelled });
    // The server drains the stream: it ends after the last answer.
    if (!this.#isOpen && this.#inFlight.size === 0 && !this.#stream.writableEnded) this.#stream.end();
    return undefined;
  }

  #takeCalls(): Call[] {
    const frames: Call[] = [];
    let sizeBytes = 0;
    let taken = 0;
    for (const inFlight of this.#queue) {
      if (sizeBytes >= BATCH_BYTES.batch) break;
      taken += 1;
      this.#queuedBytes -= inFlight.sizeBytes;
      // Given up before it was sent.
      if (!this.#inFlight.has(inFlight.number)) continue;
      inFlight.isSent = true;
      sizeBytes += inFlight.sizeBytes;
      frames.push(this.#frame(inFlight));
    }
    this.#queue = taken === this.#queue.length ? [] : this.#queue.slice(taken);
    return frames;
  }

  #frame({ number, call }: CallInFlight): Call {
    const { path, request, headers, deadline } = call;
    const { authorization, subjectToken, traceparent } = headers;
    const frame = create(CallSchema, { number, method: path, request, timeoutMs: timeoutOf(deadline) });
    if (authorization !== undefined && authorization !== this.#authorization) {
      frame.authorization = authorization;
      this.#authorization = authorization;
    }
    if (subjectToken !== undefined) frame.subjectToken = subjectToken;
    if (traceparent !== undefined) frame.traceparent = traceparent;
    return frame;
  }

  #write(message: Buffer, written: () => void): void {
    if (this.#isServed) {
      this.#stream.write(message, written);
      return;
    }
    this.#whenServed = written;
    this.#stream.write(message);
  }

  #served(): void {
    this.#isServed = true;
    this.#whenServed?.();
    this.#whenServed = undefined;
  }

  #receive(message: Buffer): void {
    try {
      const { answers, draining } = decodeAnswers(message);
      if (draining) this.#isOpen = false;
      for (const answer of answers) this.#accept(answer);
    } catch (error) {
      this.#failure ??= undecodable(new Undecodable(error instanceof Error ? error.message : 'malformed'));
      this.close();
      this.#end();
    }
    if (!this.#isOpen) this.#writer.notify();
  }

  #accept({ number, response, partial, status: failure }: Answer): void {
    const inFlight = this.#inFlight.get(number);
    if (inFlight === undefined) return;
    inFlight.partBytes += response.length;
    if (failure !== undefined) {
      inFlight.settle(errorOf(wireStatusOf(failure)));
    } else if (inFlight.partBytes > MESSAGE_LIMIT_BYTES) {
      inFlight.settle(new AppError('too_large', genericCode('too_large'), 'the answer is too large'));
    } else if (partial) {
      inFlight.parts.push(response);
    } else {
      inFlight.settle(inFlight.parts.length === 0 ? response : Buffer.concat([...inFlight.parts, response]));
    }
  }

  #fail(error: ServiceError): void {
    this.#isOpen = false;
    const isUnknown = error.code === status.UNIMPLEMENTED && !this.#isServed;
    this.#failure ??= isUnknown ? new NotServed() : fromStatus(error);
    if (this.#stream.readableEnded || this.#stream.destroyed) this.#end();
  }

  #end(): void {
    this.#isOpen = false;
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const failure = this.#failure ?? streamEnded();
    if (failure instanceof NotServed) this.#onNotServed();
    for (const inFlight of [...this.#inFlight.values()]) inFlight.settle(failure);
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#cancelled = [];
  }
}

function sizeOf({ request, headers }: UnaryCall): number {
  return request.length + (headers.authorization?.length ?? 0) + (headers.subjectToken?.length ?? 0);
}

/** Whole milliseconds left, at least one; 0 without a deadline. */
function timeoutOf(deadline: number | undefined): number {
  const leftMs = Math.ceil((deadline ?? Number.POSITIVE_INFINITY) - Date.now());
  return leftMs < timerLimitMs ? Math.max(1, leftMs) : 0;
}

function wireStatusOf({ code, message, detail }: Status): WireStatus {
  const { buffer, byteOffset, length } = detail;
  return {
    code,
    details: message,
    detail: length === 0 ? undefined : Buffer.from(buffer, byteOffset, length),
  };
}

function late(): AppError {
  return new AppError('timeout', genericCode('timeout'), 'no answer came in time');
}

function callAborted(): AppError {
  return new AppError('unavailable', genericCode('unavailable'), 'the call was cancelled');
}

function streamEnded(): AppError {
  return new AppError('unavailable', 'RPC_STREAM_ENDED', 'the stream of calls has ended');
}

import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Metadata, type ServerDuplexStream, status } from '@grpc/grpc-js';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import {
  type Answer,
  AnswerSchema,
  type Call,
  StatusSchema,
} from '#protos/gen/chancery/rpc/v1/multiplex_pb.js';
import { CallWatch, callCancelled, timerLimitMs } from './call-watch.ts';
import { CoalescingWriter } from './coalescing-writer.ts';
import { Undecodable } from './decode.ts';
import { certificateExpired, type Dispatcher, type UnaryMethod } from './dispatch.ts';
import { decodeCalls, encodeAnswers } from './frames.ts';
import { appErrorOf, statusOf, toStatus, type WireStatus } from './status.ts';
import { BATCH_BYTES, MAX_CONCURRENT_STREAMS, MESSAGE_LIMIT_BYTES } from './wire.ts';

type ExchangeCall = ServerDuplexStream<Buffer | Undecodable, Buffer>;

/** What a stream of calls needs of its server. */
interface CallTarget {
  readonly dispatcher: Dispatcher;
  /** Unary methods by path. */
  readonly methods: ReadonlyMap<string, UnaryMethod>;
  readonly log: Logger;
  /** Of the peer, for the log. */
  readonly clientId: string;
}

interface RunningCall {
  readonly watch: CallWatch;
  readonly requestBytes: number;
  /** Whether the client still waits for the answer. */
  isWanted: boolean;
}

interface QueuedAnswer {
  readonly number: number;
  readonly response: Buffer;
  readonly status: WireStatus | undefined;
  /** Bytes beside the response. */
  readonly otherBytes: number;
  /** Bytes of the response that were sent. */
  sentBytes: number;
}

/** Requests and unsent answers of one stream above which it is not read. */
const mostBufferedBytes = 8 * 1024 * 1024;
/** Size of an answer in memory beside its response, approximately. */
const frameBytes = 128;
/** A client that does not end a drained stream has it ended for it. */
const expiryGraceMs = 3_000;
const mostMethodCharacters = 200;
const noResponse = Buffer.alloc(0);

/**
 * The unary calls of one client on one stream (`multiplex.proto`). Each call is judged, dispatched and answered as it
 * would be without the stream.
 *
 * The stream is not read while MAX_CONCURRENT_STREAMS of its handlers run, those of cancelled calls included, or while
 * its requests and unsent answers exceed 8 MiB. Large responses are sent in parts, so that others need not wait for them.
 * A message that is malformed, or a request number that is in use, ends the stream and aborts its calls.
 */
export class CallStream {
  readonly #call: ExchangeCall;
  readonly #target: CallTarget;
  readonly #writer: CoalescingWriter;
  readonly #running = new Map<number, RunningCall>();
  readonly #answers: QueuedAnswer[] = [];
  readonly #onReleased: () => void;
  #authorization: string | undefined;
  #bufferedBytes = 0;
  #unanswered = 0;
  #isPaused = false;
  #drain: 'none' | 'due' | 'announced' = 'none';
  /** With which status the stream ends when it is idle. */
  #ending: { readonly reason: AppError | undefined } | undefined;
  #hasEnded = false;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param msLeft of the peer's certificate
   * @param onReleased called when the stream has ended and all its handlers have returned
   */
  constructor(call: ExchangeCall, target: CallTarget, msLeft: number, onReleased: () => void) {
    this.#call = call;
    this.#target = target;
    this.#onReleased = onReleased;
    this.#writer = new CoalescingWriter({
      next: () => this.#nextMessage(),
      write: (message, written) => void call.write(message, written),
    });
    // The client learns before the first answer that the stream is served.
    call.sendMetadata(new Metadata());
    call.on('data', (message: Buffer | Undecodable) => this.#receive(message));
    call.once('end', () => this.#endWhenIdle(undefined));
    call.once('cancelled', () => this.#close(callCancelled()));
    if (msLeft < timerLimitMs) this.#timer = setTimeout(() => this.#expire(), msLeft).unref();
  }

  /** Notifies the client to use another stream; the client ends this one after its last answer. */
  drain(): void {
    if (this.#drain !== 'none') return;
    this.#drain = 'due';
    this.#writer.notify();
  }

  /** Aborts the calls in flight and ends the stream when they have been answered. */
  abort(reason: AppError): void {
    for (const { watch } of this.#running.values()) watch.abort(reason);
    this.#endWhenIdle(reason);
  }

  /** From now on each call is refused, and the client is to connect again. Calls in flight finish. */
  #expire(): void {
    this.drain();
    this.#timer = setTimeout(() => this.#endWhenIdle(certificateExpired()), expiryGraceMs).unref();
  }

  #receive(message: Buffer | Undecodable): void {
    if (this.#hasEnded) return;
    try {
      if (message instanceof Undecodable) throw new RangeError(message.reason);
      const { calls, cancelled } = decodeCalls(message);
      if (calls.length > MAX_CONCURRENT_STREAMS) throw new RangeError('too many calls');
      for (const number of cancelled) this.#cancel(number);
      for (const call of calls) this.#accept(call);
    } catch (error) {
      this.#refuseStream(error instanceof Error ? error.message : 'malformed');
    }
    this.#limitReading();
  }

  #accept(frame: Call): void {
    // The client has been notified to use another stream; this one ends after its last answer.
    if (this.#ending !== undefined) return;
    if (this.#running.has(frame.number)) throw new RangeError(`call ${frame.number} is in progress`);
    if (frame.method.length > mostMethodCharacters) throw new RangeError('the name of a method is too long');
    if (frame.authorization !== undefined) this.#authorization = frame.authorization;
    const method = this.#target.methods.get(frame.method);
    if (method === undefined) this.#queue(frame.number, noResponse, unimplemented(frame.method));
    else this.#start(method, frame);
  }

  #start(method: UnaryMethod, { number, request, timeoutMs, subjectToken, traceparent }: Call): void {
    const watch = new CallWatch();
    const authorization = this.#authorization;
    const texts = [authorization, subjectToken, traceparent];
    const textBytes = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
    const call = { watch, requestBytes: request.length + textBytes, isWanted: true };
    this.#running.set(number, call);
    this.#bufferedBytes += call.requestBytes;
    this.#unanswered += 1;
    if (timeoutMs > 0) watch.abortAfter(timeoutMs, deadlineExceeded);
    const incoming = {
      connection: this.#call,
      watch,
      authorization,
      subjectToken,
      traceparent,
      deadline: timeoutMs > 0 ? Date.now() + timeoutMs : undefined,
    };
    void this.#answer(number, call, this.#target.dispatcher.unary(method, incoming, request));
  }

  async #answer(number: number, call: RunningCall, work: Promise<Buffer>): Promise<void> {
    try {
      const response = await work;
      const isTooLarge = response.length > MESSAGE_LIMIT_BYTES;
      if (!isTooLarge && call.isWanted) this.#queue(number, response, undefined);
      else if (call.isWanted) this.#queue(number, noResponse, tooLarge(response.length));
    } catch (error) {
      if (call.isWanted) this.#queue(number, noResponse, statusOf(appErrorOf(error)));
    }
    this.#unanswered -= 1;
    this.#writer.notify();
    call.watch.whenReturned(() => this.#release(number, call));
  }

  /** Frees the place of a call whose handler has returned. */
  #release(number: number, call: RunningCall): void {
    this.#running.delete(number);
    this.#bufferedBytes -= call.requestBytes;
    this.#limitReading();
    this.#releaseStream();
  }

  #cancel(number: number): void {
    const call = this.#running.get(number);
    if (call === undefined) return;
    call.isWanted = false;
    call.watch.abort(callCancelled());
  }

  #queue(number: number, response: Buffer, failure: WireStatus | undefined): void {
    if (this.#hasEnded) return;
    const otherBytes = frameBytes + (failure?.details.length ?? 0) + (failure?.detail?.length ?? 0);
    this.#answers.push({ number, response, status: failure, sentBytes: 0, otherBytes });
    this.#bufferedBytes += response.length + otherBytes;
    this.#writer.notify();
  }

  #nextMessage(): Buffer | undefined {
    if (this.#hasEnded) return undefined;
    const isDraining = this.#drain === 'due';
    const answers = this.#takeAnswers();
    if (answers.length === 0 && !isDraining) {
      this.#endIfIdle();
      return undefined;
    }
    if (isDraining) this.#drain = 'announced';
    this.#limitReading();
    return encodeAnswers({ answers, draining: isDraining });
  }

  /** Parts of responses take turns, and so do the calls that wait for them. */
  #takeAnswers(): Answer[] {
    const frames: Answer[] = [];
    let sizeBytes = 0;
    while (sizeBytes < BATCH_BYTES.batch) {
      const answer = this.#answers.shift();
      if (answer === undefined) break;
      const { number, response, sentBytes } = answer;
      const part = response.subarray(sentBytes, sentBytes + BATCH_BYTES.part);
      answer.sentBytes += part.length;
      const isPartial = answer.sentBytes < response.length;
      if (isPartial) this.#answers.push(answer);
      frames.push(frameOf({ number, response: part, partial: isPartial }, answer.status));
      sizeBytes += part.length + answer.otherBytes;
      this.#bufferedBytes -= part.length + (isPartial ? 0 : answer.otherBytes);
    }
    return frames;
  }

  #limitReading(): void {
    const isFull = this.#running.size >= MAX_CONCURRENT_STREAMS || this.#bufferedBytes > mostBufferedBytes;
    if (isFull === this.#isPaused || this.#hasEnded) return;
    this.#isPaused = isFull;
    if (isFull) this.#call.pause();
    else this.#call.resume();
  }

  #endWhenIdle(reason: AppError | undefined): void {
    this.#ending ??= { reason };
    this.#writer.notify();
  }

  #endIfIdle(): void {
    if (this.#ending === undefined || this.#unanswered > 0) return;
    this.#end(this.#ending.reason);
  }

  #refuseStream(fault: string): void {
    const { log, clientId } = this.#target;
    log.warn({ peer: clientId, fault }, 'a stream of calls was ended: it breaks the protocol');
    this.#end(new AppError('invalid', 'UNDECODABLE_MESSAGE', `the message carries no calls: ${fault}`));
  }

  #end(reason: AppError | undefined): void {
    if (this.#hasEnded) return;
    this.#close(reason ?? callCancelled());
    if (reason === undefined) this.#call.end();
    else this.#call.emit('error', toStatus(reason));
  }

  /** Aborts what runs; nothing more is sent. */
  #close(reason: AppError): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    this.#answers.length = 0;
    // A paused stream would keep what the client has sent.
    if (this.#isPaused) this.#call.resume();
    for (const { watch } of this.#running.values()) watch.abort(reason);
    this.#releaseStream();
  }

  #releaseStream(): void {
    if (this.#hasEnded && this.#running.size === 0) this.#onReleased();
  }
}

function frameOf(answer: MessageInitShape<typeof AnswerSchema>, failure: WireStatus | undefined): Answer {
  const frame = create(AnswerSchema, answer);
  if (failure === undefined) return frame;
  const { code, details: message, detail = noResponse } = failure;
  frame.status = create(StatusSchema, { code, message, detail });
  return frame;
}

function deadlineExceeded(): AppError {
  return new AppError('timeout', genericCode('timeout'), 'the deadline of the call has passed');
}

// The statuses that grpc-js sends in these cases.

function unimplemented(method: string): WireStatus {
  const details = `The server does not implement the method ${method}`;
  return { code: status.UNIMPLEMENTED, details, detail: undefined };
}

function tooLarge(sizeBytes: number): WireStatus {
  const details = `Sent message larger than max (${sizeBytes} vs. ${MESSAGE_LIMIT_BYTES})`;
  return { code: status.RESOURCE_EXHAUSTED, details, detail: undefined };
}

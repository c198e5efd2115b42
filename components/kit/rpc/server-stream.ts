import { once } from 'node:events';
import type {
  ServerDuplexStream,
  ServerReadableStream,
  ServerUnaryCall,
  ServerWritableStream,
} from '@grpc/grpc-js';
import { Inbox } from './inbox.ts';

type ReadableCall = ServerReadableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>;
type WritableCall = ServerWritableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>;
export type AnyServerCall = ServerUnaryCall<unknown, unknown> | ReadableCall | WritableCall;

export interface CallEvents {
  once(event: string, listener: (value: unknown) => void): unknown;
  on(event: string, listener: (value: unknown) => void): unknown;
}

/**
 * The client's messages. Ends at its half-close, throws the signal's reason when the call is aborted, and throws what
 * `check` throws for a message after the messages before it.
 */
export function requestsOf(
  call: ReadableCall & CallEvents,
  signal: AbortSignal,
  check: (message: unknown) => void,
): AsyncIterable<unknown> {
  const inbox = new Inbox<unknown>(call);
  let refused = false;
  call.on('data', (message: unknown) => {
    if (refused) return;
    try {
      check(message);
      inbox.push(message);
    } catch (error) {
      refused = true;
      inbox.end(error);
    }
  });
  // A reset stream also ends its reading side, a moment before it emits `cancelled`. Without the wait a client that
  // died would look like one that has finished.
  call.once('end', () => setImmediate(() => inbox.end()));
  call.once('error', (error: unknown) => inbox.end(error));
  if (signal.aborted) inbox.end(signal.reason);
  else signal.addEventListener('abort', () => inbox.end(signal.reason), { once: true });
  return inbox;
}

/** Writes a handler's responses as fast as the client reads them. */
export async function pump(call: WritableCall, responses: unknown, signal: AbortSignal): Promise<void> {
  const iterator = (responses as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const step = await orAbort(iterator.next(), signal);
      if (step.done === true) return;
      if (!call.write(step.value)) await orAbort(once(call, 'drain', { signal }), signal);
    }
  } catch (error) {
    // Not awaited: a handler that waits for something else runs its finally clauses when that wait ends.
    iterator.return?.().catch(() => undefined);
    throw signal.aborted ? signal.reason : error;
  }
}

/** The result of `work`, or the signal's reason when that comes first. */
async function orAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) throw signal.reason;
  const { promise, reject } = Promise.withResolvers<never>();
  const aborted = () => reject(signal.reason);
  signal.addEventListener('abort', aborted, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', aborted);
  }
}

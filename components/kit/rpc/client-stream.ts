import { once } from 'node:events';
import type {
  ClientDuplexStream,
  ClientReadableStream,
  ClientWritableStream,
  ServiceError,
} from '@grpc/grpc-js';
import { AppError } from '#core/errors/errors.ts';
import { Undecodable } from './decode.ts';
import { Inbox } from './inbox.ts';
import { fromStatus } from './status.ts';

type ReadableCall = ClientReadableStream<unknown> | ClientDuplexStream<unknown, unknown>;
type WritableCall = ClientWritableStream<unknown> | ClientDuplexStream<unknown, unknown>;

interface Outbox {
  send(message: unknown): Promise<void>;
  close(): void;
}

/** The sending half: waits for buffer space, and refuses after the stream has ended. */
export function clientStream(call: WritableCall): Outbox {
  const ended = new AbortController();
  let reason = new AppError('unavailable', 'RPC_STREAM_ENDED', 'the stream has ended');
  call.once('error', (error: ServiceError) => {
    reason = fromStatus(error);
  });
  call.once('status', () => ended.abort());
  return {
    send: async (message) => {
      if (ended.signal.aborted || call.writableEnded) throw reason;
      if (call.write(message)) return;
      try {
        await once(call, 'drain', { signal: ended.signal });
      } catch {
        throw reason;
      }
    },
    close: () => {
      if (!call.writableEnded) call.end();
    },
  };
}

/** The receiving half. Messages that arrived before the end are delivered before the end or its error. */
export function receive(call: ReadableCall): AsyncIterable<unknown> {
  const inbox = new Inbox<unknown>(call);
  let failure: AppError | undefined;
  call.on('data', (message: unknown) => {
    if (message instanceof Undecodable) inbox.end(undecodable(message));
    else inbox.push(message);
  });
  call.once('end', () => inbox.end(failure));
  call.on('error', (error: ServiceError) => {
    failure ??= fromStatus(error);
    if (call.readableEnded || call.destroyed) inbox.end(failure);
  });
  return inbox;
}

/** The error of an answer that is no valid message. */
export function undecodable({ reason }: Undecodable): AppError {
  return new AppError('bad_gateway', 'UNDECODABLE_MESSAGE', `the answer is not a message: ${reason}`);
}

interface Cancellable {
  cancel(): void;
}

/** Cancels the call when the signal is aborted; returns the function that unsubscribes. */
export function followSignal(call: Cancellable, signal: AbortSignal | undefined): () => void {
  if (signal === undefined) return () => {};
  const cancel = () => call.cancel();
  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  return () => signal.removeEventListener('abort', cancel);
}

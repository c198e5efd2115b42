import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { AppError } from '#core/errors/errors.ts';

/**
 * Bodies up to this size are buffered before the service is called: one write, and a slow client does not hold a
 * connection to the service.
 */
export const wholeBodyBytes = 65_536;

/** Whether a request announces a body. */
export function announcesBody(request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined) return true;
  const length = request.headers['content-length'];
  return length !== undefined && length !== '0';
}

/** Buffers a small body (with `content-length` up to `wholeBodyBytes`); undefined when the client disconnected. */
export function takeBody(request: IncomingMessage, done: (body: Buffer | undefined) => void): void {
  const chunks: Buffer[] = [];
  let settled = false;
  const settle = (body: Buffer | undefined) => {
    if (settled) return;
    settled = true;
    done(body);
  };
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.once('end', () => settle(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
  request.once('error', () => settle(undefined));
  request.once('close', () => settle(undefined));
}

/**
 * A large or unmeasured body as a separate stream: counts bytes against the limit, and the sender may destroy it
 * without breaking the client's connection.
 */
export function streamBody(request: IncomingMessage, limitBytes: number): Readable {
  let seenBytes = 0;
  const body = new Readable({
    highWaterMark: 65_536,
    read: () => {
      request.resume();
    },
  });
  request.on('data', (chunk: Buffer) => {
    if (body.destroyed) return;
    seenBytes += chunk.length;
    if (seenBytes > limitBytes) {
      body.destroy(new AppError('too_large', 'PAYLOAD_TOO_LARGE', 'request body exceeds the limit'));
    } else if (!body.push(chunk)) {
      request.pause();
    }
  });
  // A client that is still sending must be able to read the answer: the rest of the body is discarded.
  body.once('close', () =>
    discardBody(request, () => {
      if (!request.complete) request.destroy();
    }),
  );
  request.once('end', () => {
    if (!body.destroyed) body.push(null);
  });
  request.once('error', (error) => body.destroy(error));
  request.once('close', () => {
    if (!request.complete) body.destroy(new Error('client closed the connection'));
  });
  request.pause();
  return body;
}

/** Bounds on discarding an unwanted body: total size, and silence. */
const discardLimitBytes = 64 * 1024 * 1024;
const discardMs = 10_000;
const discardSilenceMs = 1000;

/**
 * Discards the rest of a body, so that a client which writes everything before it reads does not lose the answer to a
 * reset connection. Calls back once: at the end of the body, or when a bound is exceeded.
 */
export function discardBody(request: IncomingMessage, done: () => void): void {
  if (request.complete || request.destroyed) {
    done();
    return;
  }
  let seenBytes = 0;
  let pending: (() => void) | undefined = done;
  const finish = () => {
    clearTimeout(total);
    clearTimeout(silence);
    pending?.();
    pending = undefined;
  };
  const total = setTimeout(finish, discardMs);
  const silence = setTimeout(finish, discardSilenceMs);
  request.on('data', (chunk: Buffer) => {
    seenBytes += chunk.length;
    if (seenBytes > discardLimitBytes) finish();
    else if (pending !== undefined) silence.refresh();
  });
  request.on('error', finish);
  request.once('end', finish);
  request.once('close', finish);
  request.resume();
}

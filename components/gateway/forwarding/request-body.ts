import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { discardBody } from '../answers/discard-body.ts';
import { gatewayError } from '../errors.ts';

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
      body.destroy(gatewayError('PAYLOAD_TOO_LARGE', 'request body exceeds the limit'));
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

import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** Time for a client to close a connection after its last answer. */
const closeGraceMs = 1000;

/** Status line and headers (a flat list) as bytes, for sockets without a response object. */
export function rawHead(status: number, headers: readonly string[]): Buffer {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`];
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/**
 * Sends the last bytes of a connection and ends it. Further input is discarded for a second, so that no reset overtakes
 * the answer; then the connection is destroyed.
 */
export function endConnection(socket: Duplex, bytes: Buffer): void {
  const timer = setTimeout(() => socket.destroy(), closeGraceMs);
  socket.once('close', () => clearTimeout(timer));
  socket.resume();
  socket.end(bytes);
}

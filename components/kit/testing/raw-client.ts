import { connect, type Socket } from 'node:net';

/** A client that writes bytes and keeps what it receives. */
export interface RawClient {
  readonly socket: Socket;
  /** Everything received, as latin1. */
  text(): string;
  write(bytes: string): void;
  isClosed(): boolean;
}

/** Connects to a port of loopback. */
export function openRawClient(port: number): RawClient {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => socket.destroy());
  return {
    socket,
    text: () => Buffer.concat(chunks).toString('latin1'),
    write: (bytes) => void socket.write(bytes, 'latin1'),
    isClosed: () => socket.destroyed,
  };
}

/** The key of RFC 6455 1.3. */
export const sampleKey = 'dGhlIHNhbXBsZSBub25jZQ==';

/** An opening handshake as a browser sends it; `changes` replaces headers, adds them, or removes them. */
export function handshakeTo(
  path: string,
  changes: Readonly<Record<string, string | undefined>> = {},
  line = `GET ${path} HTTP/1.1`,
): string {
  const headers: Record<string, string | undefined> = {
    host: 'h',
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': sampleKey,
    'sec-websocket-version': '13',
    ...changes,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}`],
  );
  return `${[line, ...lines].join('\r\n')}\r\n\r\n`;
}

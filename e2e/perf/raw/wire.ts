import type { Socket } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';

/** Key, certificate and CA as PEM: both ends of every hop present a certificate, as the product's do. */
export interface Identity {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
}

/** The minimum of a call over mutual TLS: frames of length:u32 id:u32 body on one persistent connection. */
export interface Wire {
  call(body: Uint8Array): Promise<Buffer>;
  /** Sends a frame without an answer. */
  tell(body: Uint8Array): void;
}

const headBytes = 8;
/** Id of frames without an answer. */
const untold = 0;

function send(socket: Socket, id: number, body: Uint8Array): void {
  const frame = Buffer.allocUnsafe(headBytes + body.length);
  frame.writeUInt32LE(body.length, 0);
  frame.writeUInt32LE(id, 4);
  frame.set(body, headBytes);
  socket.write(frame);
}

function onFrames(socket: Socket, take: (id: number, body: Buffer) => void): void {
  let chunks: Buffer[] = [];
  let held = 0;
  let wanted = headBytes;
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    held += chunk.length;
    if (held < wanted) return;
    let rest: Buffer = chunks.length === 1 ? chunk : Buffer.concat(chunks);
    for (;;) {
      wanted = rest.length < headBytes ? headBytes : headBytes + rest.readUInt32LE(0);
      if (rest.length < wanted) break;
      take(rest.readUInt32LE(4), rest.subarray(headBytes, wanted));
      rest = rest.subarray(wanted);
    }
    chunks = [rest];
    held = rest.length;
  });
}

/**
 * Answers frames in the order in which the answers are ready, and accepts frames without an answer. Resolves with the
 * port.
 */
export function serveFrames(
  identity: Identity,
  answer: (body: Buffer) => Promise<Uint8Array>,
  take: (body: Buffer) => void = () => undefined,
): Promise<number> {
  const server = createServer({ ...identity, requestCert: true, minVersion: 'TLSv1.3' }, (socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    onFrames(socket, (id, body) => {
      if (id === untold) take(body);
      else void answer(body).then((result) => send(socket, id, result));
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}

export async function openWire(identity: Identity, port: number): Promise<Wire> {
  const socket: TLSSocket = connect({
    ...identity,
    host: '127.0.0.1',
    port,
    checkServerIdentity: () => undefined,
  });
  socket.setNoDelay(true);
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
  // The other program may end first when the benchmark ends.
  socket.on('error', () => socket.destroy());
  const waiting = new Map<number, (body: Buffer) => void>();
  let next = 0;
  onFrames(socket, (id, body) => {
    waiting.get(id)?.(body);
    waiting.delete(id);
  });
  return {
    call: (body) =>
      new Promise((resolve) => {
        next += 1;
        waiting.set(next, resolve);
        send(socket, next, body);
      }),
    tell: (body) => send(socket, untold, body),
  };
}

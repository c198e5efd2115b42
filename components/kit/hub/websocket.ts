import type { IncomingMessage } from 'node:http';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { Upgrade } from '#kit/http/http.ts';
import type { Transport, TransportEvents } from './transport.ts';

/** Opens WebSockets on connections of the HTTP listener. */
export interface WebSocketOpener {
  open(request: IncomingMessage, upgrade: Upgrade, ready: (socket: WebSocket) => void): void;
}

/** @param messageBytes largest message of a client, which may hold several records */
export function webSocketOpener(messageBytes: number): WebSocketOpener {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: messageBytes,
  });
  return {
    open: (request, upgrade, ready) => {
      upgrade.accept();
      server.handleUpgrade(request, upgrade.socket, upgrade.head, ready);
    },
  };
}

/** The transport over an open WebSocket. */
export function webSocketTransport(socket: WebSocket, events: TransportEvents, closeMs: number): Transport {
  socket.on('message', (data: RawData) => events.onBytes(bytesOf(data)));
  socket.on('close', () => events.onGone());
  // A broken frame; ws closes the socket by itself.
  socket.on('error', () => undefined);
  return {
    name: 'WebSockets',
    isPinged: true,
    unsentBytes: () => socket.bufferedAmount,
    send: (records) => socket.send(records, { binary: false }),
    end: (last) => {
      if (last.length > 0) socket.send(last, { binary: false });
      socket.close(1000);
      const late = setTimeout(() => socket.terminate(), closeMs);
      late.unref();
      socket.once('close', () => clearTimeout(late));
    },
    tick: () => true,
  };
}

function bytesOf(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return Buffer.isBuffer(data) ? data : Buffer.from(data);
}

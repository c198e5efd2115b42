import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';

/**
 * The minimum of a hub: bare `ws`. Settings: {key, cert, ca} for a listener with mutual TLS, or nothing. A client is named
 * by the path of its request. Messages: {all: [text]} loads texts for every client, {each: [[name, text]]} texts for one
 * client each; `send` sends what is loaded, and is answered when all is sent.
 */

interface Texts {
  readonly all?: readonly string[];
  readonly each?: readonly (readonly [string, string])[];
}

const settings = JSON.parse(process.argv[2] ?? '{}');
const sockets = new Map<string, WebSocket>();
const isSecure = settings.key !== undefined;
const server = isSecure
  ? createTlsServer({ ...settings, requestCert: true, minVersion: 'TLSv1.3' })
  : createServer();
new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket, request) => {
  const name = request.url ?? '';
  sockets.set(name, socket);
  socket.on('error', () => socket.terminate());
  socket.on('close', () => sockets.delete(name));
});

/** After so many bytes sockets get a turn to drain. */
const turnBytes = 64 * 1024;

/** Loads what is sent later; the clock does not run yet. */
function load({ all = [], each = [] }: Texts): () => Promise<void> {
  const messages = all.map((text) => Buffer.from(text));
  const named = each.map(([name, text]) => [name, Buffer.from(text)] as const);
  return async () => {
    for (const message of messages) {
      for (const socket of sockets.values()) socket.send(message, { binary: false });
      await nextTurn();
    }
    let bytes = 0;
    for (const [name, message] of named) {
      sockets.get(name)?.send(message, { binary: false });
      bytes += message.length;
      if (bytes < turnBytes) continue;
      bytes = 0;
      await nextTurn();
    }
  };
}

let send: () => Promise<void> = async () => undefined;
process.on('message', (text) => {
  if (text === 'send') {
    void send().then(() => process.send?.('sent'));
    return;
  }
  send = load(JSON.parse(String(text)));
  process.send?.('loaded');
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 2_048 }, () => {
  process.send?.(String((server.address() as AddressInfo).port));
});
// The benchmark may end first.
process.once('disconnect', () => process.exit(0));

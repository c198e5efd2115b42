import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type WebSocket, WebSocketServer } from 'ws';
import { serveSending } from './sender.ts';

/**
 * The minimum of a hub: bare `ws`. Settings: {key, cert, ca} for a listener with mutual TLS, or nothing. A client is named
 * by the path of its request. Messages: {all: [text]} loads texts for every client, {each: [[name, text]]} texts for one
 * client each; `send` sends what is loaded, and is answered when all is sent.
 */

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

serveSending(server, {
  prepare: (text) => Buffer.from(text),
  toAll: (message) => {
    for (const socket of sockets.values()) socket.send(message, { binary: false });
  },
  toOne: (name, message) => sockets.get(name)?.send(message, { binary: false }),
});

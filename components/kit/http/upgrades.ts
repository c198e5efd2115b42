import { type IncomingMessage, type Server, type ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Answers a request of a listener. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Serves `handler` on a listener that supports HTTP/1.1 alone. An `Upgrade` is ignored (RFC 9110, section 7.8), but its
 * answer is the last one of the connection and no request behind it is served: the sender of the upgrade may have let
 * another party write to the connection, and those bytes are not its own.
 */
export function serveWithoutUpgrades<S extends Server>(server: S, handler: Handler): S {
  const ending = new WeakSet<Socket>();
  const guarded =
    (next: Handler): Handler =>
    (request, response) => {
      const { socket } = request;
      if (ending.has(socket)) return;
      if (request.headers.upgrade !== undefined) {
        ending.add(socket);
        response.shouldKeepAlive = false;
      }
      next(request, response);
    };
  server.on('request', guarded(handler));
  // Without a listener Node itself answers an unknown expectation, before every handler.
  server.on(
    'checkExpectation',
    guarded((_request, response) => void response.writeHead(417).end()),
  );
  return server;
}

const upgradeKey = Symbol('upgrade');

/** The connection of a request that requests a WebSocket at a path that serves them. */
export interface Upgrade {
  readonly socket: Duplex;
  /** Bytes that arrived behind the request. */
  readonly head: Buffer;
  /** Releases the connection from the request, which counts as answered with 101. */
  accept(): void;
}

interface UpgradingRequest extends IncomingMessage {
  [upgradeKey]?: Upgrade;
}

/** The connection that a handler may take over; undefined for every other request. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  const upgrading: UpgradingRequest = request;
  return upgrading[upgradeKey];
}

/**
 * Serves `handler` on a listener whose `paths` accept WebSocket handshakes (RFC 6455, section 4.2.1). A handshake
 * reaches the handler like any request, so that it is authenticated, limited and refused alike; the handler takes its
 * connection over with `upgradeOf`. What is not a handshake, or waits behind an unanswered request of its connection,
 * is not upgraded.
 */
export function serveWithUpgrades<S extends Server>(
  create: (options: Pick<ServerOptions, 'shouldUpgradeCallback'>) => S,
  handler: Handler,
  paths: ReadonlySet<string>,
): S {
  const unanswered = new WeakMap<Socket, number>();
  const count = (socket: Socket, change: number) =>
    unanswered.set(socket, (unanswered.get(socket) ?? 0) + change);
  const server = create({
    shouldUpgradeCallback: (request) =>
      paths.has(pathOf(request)) && isHandshake(request) && (unanswered.get(request.socket) ?? 0) === 0,
  });
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) =>
    handler(request, responseTo(request, socket, head)),
  );
  return serveWithoutUpgrades(server, (request, response) => {
    const { socket } = request;
    count(socket, 1);
    response.once('close', () => count(socket, -1));
    handler(request, response);
  });
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?', 1)[0] ?? '';
}

const webSocketKey = /^[+/0-9A-Za-z]{22}==$/;

function isHandshake({ method, headers, httpVersion }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    webSocketKey.test(headers['sec-websocket-key'] ?? '') &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined
  );
}

/** A response for a handshake. When it is sent, as a refusal, the connection ends. */
function responseTo(request: UpgradingRequest, socket: Socket, head: Buffer): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  socket.on('error', () => socket.destroy());
  const refused = () => socket.destroySoon();
  response.once('finish', refused);
  request[upgradeKey] = {
    socket,
    head,
    accept: () => {
      response.off('finish', refused);
      response.statusCode = 101;
      // Ends the observation of the request; nothing is written.
      response.emit('finish');
      response.detachSocket(socket);
    },
  };
  return response;
}

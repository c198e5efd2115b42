import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

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

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** State of a connection of the listener. */
export interface Connections {
  /** Counts a request that is not answered yet. */
  hold(socket: Socket, response: ServerResponse): void;
  isBusy(socket: Socket): boolean;
  /** No further request on this connection is served. */
  end(socket: Socket): void;
  isEnding(socket: Socket): boolean;
}

export function createConnections(): Connections {
  const unanswered = new WeakMap<Socket, number>();
  const ending = new WeakSet<Socket>();
  const count = (socket: Socket) => unanswered.get(socket) ?? 0;
  return {
    hold: (socket, response) => {
      unanswered.set(socket, count(socket) + 1);
      response.once('close', () => unanswered.set(socket, count(socket) - 1));
    },
    isBusy: (socket) => count(socket) > 0,
    end: (socket) => void ending.add(socket),
    isEnding: (socket) => ending.has(socket),
  };
}

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Server } from 'socket.io';

/**
 * socket.io as a peer of a hub: it gets the messages of `broadcast.ts`, records of the SignalR protocol, and sends their
 * events with the same names and arguments. A client is named by `name` in its query.
 */

/** What an event of a record consists of. */
interface Event {
  readonly target: string;
  readonly arguments: readonly unknown[];
}

interface Texts {
  readonly all?: readonly string[];
  readonly each?: readonly (readonly [string, string])[];
}

/** After so many bytes sockets get a turn to drain, as at the bare server. */
const turnBytes = 64 * 1024;
/** Longer than the benchmark, whose clients answer no pings. */
const pingMs = 600_000;

const server = createServer();
const io = new Server(server, {
  transports: ['websocket'],
  perMessageDeflate: false,
  serveClient: false,
  pingInterval: pingMs,
});
io.on('connection', (socket) => {
  void socket.join(String(socket.handshake.query['name']));
});

function eventOf(record: string): Event {
  return JSON.parse(record.slice(0, -1));
}

/** Loads what is sent later; the clock does not run yet. */
function load({ all = [], each = [] }: Texts): () => Promise<void> {
  const events = all.map(eventOf);
  const named = each.map(([name, text]) => ({ name, bytes: text.length, event: eventOf(text) }));
  return async () => {
    for (const event of events) {
      io.emit(event.target, ...event.arguments);
      await nextTurn();
    }
    let sent = 0;
    for (const { name, bytes, event } of named) {
      io.to(name).emit(event.target, ...event.arguments);
      sent += bytes;
      if (sent < turnBytes) continue;
      sent = 0;
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

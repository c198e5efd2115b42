import { createServer } from 'node:http';
import { Server } from 'socket.io';
import { serveSending } from './sender.ts';

/**
 * socket.io as a peer of a hub: it gets the messages of `broadcast.ts`, records of the SignalR protocol, and sends their
 * events with the same names and arguments. A client is named by `name` in its query.
 */

/** What an event of a record consists of. */
interface Event {
  readonly target: string;
  readonly arguments: readonly unknown[];
}

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

serveSending<Event>(server, {
  prepare: (record) => JSON.parse(record.slice(0, -1)),
  toAll: (event) => void io.emit(event.target, ...event.arguments),
  toOne: (name, event) => void io.to(name).emit(event.target, ...event.arguments),
});

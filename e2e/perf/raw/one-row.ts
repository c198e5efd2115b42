import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { type WebSocket, WebSocketServer } from 'ws';
import { connectBus } from '#kit/bus/bus.ts';
import { createLogger } from '#kit/log/log.ts';

/**
 * The minimum between a committed row and a client: at a wake signal one select, and one send. Settings: {key, cert, ca}
 * of the listener, {natsUrl, subject, databaseUrl}.
 */

const { natsUrl, subject, databaseUrl, ...identity } = JSON.parse(process.argv[2] ?? '{}');
const log = createLogger({ service: 'raw', level: 'silent' });
const bus = await connectBus({ url: natsUrl, name: 'raw', log });
const database = new pg.Client({ connectionString: databaseUrl });
await database.connect();
// The database may end first when the benchmark ends.
database.on('error', () => process.exit(0));

const sockets = new Set<WebSocket>();
const select = {
  name: 'next',
  text: 'select sequence, text from raw_rows where sequence > $1 order by sequence',
};
let position = '0';
bus.subscribe(subject, () => {
  void database.query({ ...select, values: [position] }).then(({ rows }) => {
    for (const { sequence, text } of rows) {
      position = sequence;
      for (const socket of sockets) socket.send(text);
    }
  });
});

const server = createServer({ ...identity, requestCert: true, minVersion: 'TLSv1.3' });
new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket) => {
  sockets.add(socket);
  socket.on('error', () => socket.terminate());
  socket.on('close', () => sockets.delete(socket));
});
server.listen(0, '127.0.0.1', () => {
  process.send?.(String((server.address() as AddressInfo).port));
});

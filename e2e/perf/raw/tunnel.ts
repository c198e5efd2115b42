import { type AddressInfo, createServer } from 'node:net';
import { connect } from 'node:tls';

/** A bare byte tunnel to a listener with mutual TLS. Settings: {port, key, cert, ca}. */

const { port, ...identity } = JSON.parse(process.argv[2] ?? '{}');

const server = createServer({ noDelay: true, allowHalfOpen: false }, (client) => {
  const inner = connect({ ...identity, host: '127.0.0.1', port, checkServerIdentity: () => undefined });
  inner.setNoDelay(true);
  const end = () => {
    client.destroy();
    inner.destroy();
  };
  for (const socket of [client, inner]) socket.on('error', end).on('close', end);
  client.pipe(inner);
  inner.pipe(client);
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 2_048 }, () => {
  process.send?.(String((server.address() as AddressInfo).port));
});
// The benchmark may end first.
process.once('disconnect', () => process.exit(0));

import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { bearerIn, createTokenCheck } from '../token.ts';

/**
 * The minimum of a helper: a JSON body over mutual TLS, the token check, a JSON answer. Settings: {key, cert, ca,
 * clientKey}, and the answer.
 */

const { key, cert, ca, clientKey, answer } = JSON.parse(process.argv[2] ?? '{}');
const check = createTokenCheck(clientKey);

const server = createServer(
  { key, cert, ca, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' },
  async (request, response) => {
    check(bearerIn(request.headers.authorization));
    const { actionId } = JSON.parse(await text(request));
    const body = JSON.stringify({ ...answer, actionId });
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  },
);
process.once('disconnect', () => process.exit(0));
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.send?.(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

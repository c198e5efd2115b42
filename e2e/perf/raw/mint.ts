import { randomUUID } from 'node:crypto';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createTokenSigner } from './token.ts';

/**
 * The minimum of a token endpoint: one mutual-TLS request, one ES256 JWT. Settings: {key, cert, ca, signingKey} as PEM.
 */

const { key, cert, ca, signingKey } = JSON.parse(process.argv[2] ?? '{}');
const signToken = createTokenSigner(signingKey);

function mint(): string {
  return signToken({
    iss: 'urn:platform:raw',
    aud: ['raw:service'],
    sub: '00000000-0000-0000-0002-000000000003',
    client_id: 'service-register',
    jti: randomUUID(),
    scope: 'wallets:sign validator:write',
    token_type: 'service',
    token_use: 'access',
    tier: 'service',
  });
}

const server = createServer(
  { key, cert, ca, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' },
  (request, response) => {
    request.resume();
    request.on('end', () => {
      const body = JSON.stringify({ access_token: mint(), token_type: 'Bearer', expires_in: 3600 });
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      });
      response.end(body);
    });
  },
);
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.send?.(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`);
});

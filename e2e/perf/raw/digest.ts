import { createPrivateKey, sign } from 'node:crypto';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';

/**
 * The minimum of a signing call: HTTP/2 over mutual TLS, a message in, 64 bytes out: a signature of Ed25519, or of ES256 with
 * the hash `sha256`. Settings: {key, cert, ca, signingKey} as PEM, {hash}.
 */

const { signingKey, hash = null, ...identity } = JSON.parse(process.argv[2] ?? '{}');
const privateKey = createPrivateKey(signingKey);

const server = createSecureServer({
  ...identity,
  requestCert: true,
  rejectUnauthorized: true,
  minVersion: 'TLSv1.3',
});
server.on('stream', (stream: ServerHttp2Stream) => {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('end', () => {
    stream.respond({ ':status': 200 });
    stream.end(sign(hash, Buffer.concat(chunks), { key: privateKey, dsaEncoding: 'ieee-p1363' }));
  });
});
server.listen(0, '127.0.0.1', () => {
  process.send?.(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

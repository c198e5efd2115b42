import type { ClientHttp2Session } from 'node:http2';

/** Has a message signed by `digest.ts`: 64 bytes. */
export function signRaw(session: ClientHttp2Session, message: Uint8Array): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const stream = session.request({ ':method': 'POST', ':path': '/' });
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('error', reject);
  stream.on('end', () => {
    const signature = Buffer.concat(chunks);
    if (signature.length === 64) resolve(signature);
    else reject(new Error(`a signature has ${signature.length} bytes`));
  });
  stream.end(message);
  return promise;
}

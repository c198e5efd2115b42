import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { AppError } from '#core/errors/errors.ts';
import { gatewayError } from '../errors.ts';

/** The answer of a service to an opening handshake. */
export type UpgradeAnswer =
  | {
      readonly kind: 'switched';
      readonly headers: IncomingHttpHeaders;
      readonly socket: Duplex;
      /** Bytes of the next protocol that came with the answer. */
      readonly head: Buffer;
    }
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: Buffer;
    };

interface UpgradeRequest {
  /** Path and query. */
  readonly target: string;
  /** Flat list of names and values. */
  readonly headers: readonly string[];
  /** Aborts the request, with its reason as the error. */
  readonly signal: AbortSignal;
}

const headLimitBytes = 16 * 1024;
const bodyLimitBytes = 64 * 1024;

/**
 * Sends an opening handshake over a dedicated connection and reads the answer with Node's parser. A connection that was
 * not upgraded is closed when this resolves or rejects: bytes after the service's answer are not read.
 */
export async function requestUpgrade(socket: TLSSocket, request: UpgradeRequest): Promise<UpgradeAnswer> {
  const { signal } = request;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    signal.throwIfAborted();
    const answer = await Promise.race([send(socket, request), aborted]);
    if (answer.kind === 'answered') socket.destroy();
    return answer;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function send(socket: TLSSocket, { target, headers }: UpgradeRequest): Promise<UpgradeAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<UpgradeAnswer>();
  socket.on('error', reject);
  const outgoing = httpRequest({
    createConnection: () => socket,
    method: 'GET',
    path: target,
    headers,
    maxHeaderSize: headLimitBytes,
    insecureHTTPParser: false,
  });
  outgoing.on('error', reject);
  outgoing.once('upgrade', (answer, stream, head) => {
    resolve({ kind: 'switched', headers: answer.headers, socket: stream, head });
  });
  outgoing.once('response', (answer) => readAnswer(answer).then(resolve, reject));
  outgoing.end();
  return promise;
}

async function readAnswer(answer: IncomingMessage): Promise<UpgradeAnswer> {
  const { statusCode: status = 0, headers } = answer;
  // Node upgrades a 101 that names its protocol; any other 1xx has no meaning for the client.
  if (status < 200 || status > 599) throw unusable(`status ${status} answers no handshake`);
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of answer) {
    const bytes: Buffer = chunk;
    sizeBytes += bytes.length;
    if (sizeBytes > bodyLimitBytes) throw unusable(`the body of the answer exceeds ${bodyLimitBytes} bytes`);
    chunks.push(bytes);
  }
  return { kind: 'answered', status, headers, body: Buffer.concat(chunks) };
}

function unusable(message: string): AppError {
  return gatewayError('BAD_GATEWAY', message);
}

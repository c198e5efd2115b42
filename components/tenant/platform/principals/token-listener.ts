import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { serveWithoutUpgrades, type TlsSource } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { spiffeIdOf } from '#kit/workload/workload.ts';
import { OAuthError, presentOAuthError, toOAuthError } from '../../tokens/oauth/oauth.ts';
import { type Parameters, parametersOfJson, parseForm } from '../../tokens/oauth/parameters.ts';
import type { MintRequest, ServiceTokenAnswer } from './mint.ts';

export const tokenPath = '/api/internal/service-auth/token';
export const delegatedTokenPath = '/api/internal/service-auth/token/delegated';

const maxBodyBytes = 16 * 1024;
const limits = {
  maxHeaderSize: 16 * 1024,
  keepAliveTimeout: 65_000,
  headersTimeout: 15_000,
  requestTimeout: 30_000,
  handshakeTimeout: 10_000,
} as const;

type Mint = (request: MintRequest) => Promise<ServiceTokenAnswer>;

interface TokenListenerOptions {
  readonly tls: TlsSource;
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly mint: Mint;
  readonly mintDelegated: Mint;
}

export interface TokenListener {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * The workload-identity listener: mutual TLS 1.3 with only the two token routes. It uses node:https directly, because
 * minting is frequent: the certificate is read once per connection and an answer is one write.
 */
export async function startTokenListener(options: TokenListenerOptions): Promise<TokenListener> {
  const { tls } = options;
  const minVersion = 'TLSv1.3';
  const material = () => {
    const { key, cert, ca } = tls.current();
    return { key, cert, ca, minVersion } as const;
  };
  const handle = createHandler(options);
  const server = serveWithoutUpgrades(
    createServer({
      ...limits,
      ...material(),
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
    }),
    handle,
  );
  const stopRotation = tls.onRotate(() => server.setSecureContext(material()));
  server.on('tlsClientError', (error, socket) =>
    // the socket carries the certificate error; `error` only reports that the connection was closed
    options.log.info({ reason: socket.authorizationError ?? error.message }, 'client refused in handshake'),
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        stopRotation();
        server.close(() => resolve());
        server.closeIdleConnections();
        setTimeout(() => server.closeAllConnections(), 3_000).unref();
      }),
  };
}

function createHandler(options: TokenListenerOptions) {
  const identities = new WeakMap<TLSSocket, Identity>();
  const identify = (socket: TLSSocket): Identity => {
    let identity = identities.get(socket);
    if (identity === undefined) {
      identity = readIdentity(socket, options.log);
      identities.set(socket, identity);
    }
    return identity;
  };
  return (request: IncomingMessage, response: ServerResponse): void => {
    const mint = routeOf(options, request);
    const { socket } = request;
    if (mint === undefined || !(socket instanceof TLSSocket)) {
      request.resume();
      answer(response, 404, '{"error":"invalid_request","error_description":"the route does not exist"}');
      return;
    }
    const identity = identify(socket);
    readBody(request)
      .then((body) => mint(toMintRequest(request, body, usable(identity, options.clock.nowMs()))))
      .then(
        (token) => answer(response, 200, JSON.stringify(token)),
        (thrown) => refuse(options.log, response, thrown),
      );
  };
}

function routeOf(options: TokenListenerOptions, request: IncomingMessage): Mint | undefined {
  if (request.method !== 'POST') return undefined;
  if (request.url === tokenPath) return options.mint;
  return request.url === delegatedTokenPath ? options.mintDelegated : undefined;
}

interface Identity {
  readonly spiffeId: string | undefined;
  readonly expiresAtMs: number;
}

function readIdentity(socket: TLSSocket, log: Logger): Identity {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (certificate === undefined) return { spiffeId: undefined, expiresAtMs: 0 };
  try {
    return { spiffeId: spiffeIdOf(certificate), expiresAtMs: certificate.validToDate.getTime() };
  } catch (error) {
    log.warn(
      { reason: error instanceof Error ? error.message : 'unreadable' },
      'the client certificate has no SPIFFE identity',
    );
    return { spiffeId: undefined, expiresAtMs: 0 };
  }
}

/** The certificate is checked at the handshake; its expiry must also be checked later on the open connection. */
function usable(identity: Identity, nowMs: number): string | undefined {
  return nowMs < identity.expiresAtMs ? identity.spiffeId : undefined;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes: Buffer = chunk;
    size += bytes.length;
    if (size > maxBodyBytes) throw new OAuthError(413, 'invalid_request', 'the request body is too large');
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function toMintRequest(request: IncomingMessage, body: string, spiffeId: string | undefined): MintRequest {
  const userAgent = request.headers['user-agent'];
  return {
    parameters: parseParameters(request.headers['content-type'] ?? '', body),
    authorization: request.headers.authorization,
    certificate: { spiffeId },
    origin: { ipAddress: request.socket.remoteAddress, userAgent },
  };
}

function parseParameters(contentType: string, body: string): Parameters {
  const type = contentType.split(';')[0]?.trim().toLowerCase();
  if (type === 'application/x-www-form-urlencoded') return parseForm(body);
  if (type === 'application/json') return parametersOfJson(parseJson(body));
  throw new OAuthError(415, 'invalid_request', 'the content type is not supported');
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw new OAuthError(400, 'invalid_request', 'the body is not valid JSON', { cause });
  }
}

function refuse(log: Logger, response: ServerResponse, thrown: unknown): void {
  const isAway = thrown instanceof AppError && thrown.kind === 'unavailable';
  const error = toOAuthError(thrown);
  if (error.status >= 500 && !isAway) log.error({ err: thrown }, 'token request failed');
  if (error.retryAfterSeconds !== undefined) {
    response.setHeader('retry-after', String(Math.max(1, Math.ceil(error.retryAfterSeconds))));
  }
  // Closes the connection, because the unread rest of the body would be parsed as the next request.
  if (error.status === 413) response.setHeader('connection', 'close');
  answer(response, error.status, JSON.stringify(presentOAuthError(error)));
}

function answer(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    pragma: 'no-cache',
  });
  response.end(body);
}

import { createSecureContext, type SecureContext, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { buildConnector } from 'undici';
import type { AppError } from '#core/errors/errors.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { spiffeIdOf } from '#kit/workload/workload.ts';
import { gatewayError } from '../errors.ts';

export interface Identity {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

export type ExpectPeer = (spiffeId: string) => boolean;

/** SVIDs carry no host names: the server name is fixed and the SPIFFE id is verified. */
const serverName = 'workload.chancery.internal';

const connectTimeoutMs = 2000;

/** A peer whose machine or network is gone is detected 11 s after its last packet, however long its answer may take. */
const keepAlive = { enable: true, initialDelay: 5000, interval: 2000, count: 3 } as const;

export interface Connector {
  /** For undici's Pool. */
  readonly connect: buildConnector.connector;
  /** A dedicated connection, for WebSockets. */
  open(endpoint: Endpoint): Promise<TLSSocket>;
}

/** Opens mutual-TLS connections with one SVID, to peers whose SPIFFE id passes `expect`. */
export function createConnector(identity: Identity, expect: ExpectPeer): Connector {
  const { key, cert, ca } = identity;
  const secureContext = createSecureContext({ key, cert, ca, minVersion: 'TLSv1.3' });
  const options = { secureContext, minVersion: 'TLSv1.3' as const, checkServerIdentity: () => undefined };
  const base = buildConnector({
    ...options,
    allowH2: false,
    maxCachedSessions: 0,
    timeout: connectTimeoutMs,
  });
  return {
    connect: (request, callback) => {
      base({ ...request, servername: serverName }, (error, socket) => {
        if (error !== null) return callback(error, null);
        const refusal = refusePeer(socket as TLSSocket, expect);
        if (refusal === undefined) return callback(null, socket.setKeepAlive(keepAlive));
        socket.destroy();
        return callback(refusal, null);
      });
    },
    open: (endpoint) => openSocket(endpoint, options, expect),
  };
}

interface OpenOptions {
  readonly secureContext: SecureContext;
  readonly minVersion: 'TLSv1.3';
  readonly checkServerIdentity: () => undefined;
}

function openSocket(endpoint: Endpoint, options: OpenOptions, expect: ExpectPeer): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = tlsConnect({
    ...options,
    ...endpoint,
    servername: serverName,
    ALPNProtocols: ['http/1.1'],
    timeout: connectTimeoutMs,
  });
  const fail = (error: Error) => {
    socket.destroy();
    reject(error);
  };
  socket.once('error', fail);
  socket.once('timeout', () => fail(gatewayError('SERVICE_UNAVAILABLE', 'connect timeout')));
  socket.once('secureConnect', () => {
    const refusal = refusePeer(socket, expect);
    if (refusal !== undefined) return fail(refusal);
    socket.setTimeout(0);
    socket.removeAllListeners('timeout');
    socket.off('error', fail);
    socket.setNoDelay(true);
    socket.setKeepAlive(keepAlive);
    return resolve(socket);
  });
  return promise;
}

/** The reason to refuse the peer; undefined when its identity is the expected one. */
function refusePeer(socket: TLSSocket, expect: ExpectPeer): Error | undefined {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return badPeer('the service showed no certificate');
  try {
    const id = spiffeIdOf(certificate);
    return expect(id) ? undefined : badPeer(`unexpected service identity ${id}`);
  } catch (cause) {
    return badPeer('the service has no usable SPIFFE identity', cause);
  }
}

function badPeer(message: string, cause?: unknown): AppError {
  return gatewayError('BAD_GATEWAY', message, { cause });
}

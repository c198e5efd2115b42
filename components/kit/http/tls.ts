import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { TLSSocket } from 'node:tls';
import type { FastifyRequest } from 'fastify';
import { AppError, genericCode } from '#core/errors/errors.ts';
import { readSvid, type SvidFacts } from '#kit/workload/svid.ts';
import { type Handler, serveWithUpgrades } from './upgrades.ts';

/** Certificate material of a listener, PEM. Client certificates are verified against `ca`. */
export interface TlsMaterial {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
}

/** Supplier of rotating certificates, such as a workload identity. */
export interface TlsSource {
  current(): TlsMaterial;
  /** Calls back after each rotation; returns the function that unsubscribes. */
  onRotate(callback: () => void): () => void;
}

/** Limits of every listener: requests that exceed them are refused before any handler runs. */
export const listenerLimits = {
  maxHeaderSize: 16 * 1024,
  keepAliveTimeout: 65_000,
  headersTimeout: 30_000,
  requestTimeout: 120_000,
} as const;

/** How a listener answers: ordinary requests, and handshakes at the paths of its WebSockets. */
interface Serving {
  readonly handler: Handler;
  readonly webSocketPaths: ReadonlySet<string>;
}

/** A plain listener. */
export function plainServer({ handler, webSocketPaths }: Serving): Server {
  const create = (upgrades: ServerOptions) => createServer({ ...listenerLimits, ...upgrades });
  return serveWithUpgrades(create, handler, webSocketPaths);
}

/**
 * A listener with mutual TLS 1.3 that requires a client certificate of the same trust domain and serves HTTP/1.1.
 * Certificates are replaced in place on rotation; open connections stay open.
 */
export function mutualTlsServer(source: TlsSource, serving: Serving): Server {
  return tlsServer(source, serving, { requestCert: true, rejectUnauthorized: true });
}

/** The same without client certificates, for callers that have none yet. */
export function serverTlsServer(source: TlsSource, serving: Serving): Server {
  return tlsServer(source, serving, {});
}

function tlsServer(source: TlsSource, serving: Serving, clients: ServerOptions): Server {
  const options: ServerOptions = {
    ...listenerLimits,
    ...material(source),
    ...clients,
    minVersion: 'TLSv1.3',
    ALPNProtocols: ['http/1.1'],
  };
  const create = (upgrades: ServerOptions) => createTlsServer({ ...options, ...upgrades });
  const server = serveWithUpgrades(create, serving.handler, serving.webSocketPaths);
  const stopListening = source.onRotate(() =>
    server.setSecureContext({ ...material(source), minVersion: 'TLSv1.3' }),
  );
  server.on('close', stopListening);
  return server;
}

function material(source: TlsSource): TlsMaterial {
  const { key, cert, ca } = source.current();
  return { key, cert, ca };
}

const peerKey = Symbol('peer');

interface IdentifiedSocket extends TLSSocket {
  /** Read once per connection. */
  [peerKey]?: SvidFacts;
}

/**
 * SPIFFE id of the client certificate of a mutual-TLS request.
 *
 * @returns `spiffe://<trust domain>/<path>`.
 * @throws AppError `unauthenticated` without a verified X.509-SVID (no URI SAN, several, a CA certificate, the wrong
 *   key usage), and when it has expired while the connection stayed open.
 */
export function peerSpiffeId(request: FastifyRequest): string {
  const socket: unknown = request.raw.socket;
  if (!(socket instanceof TLSSocket)) {
    throw refused('The connection carries no client certificate.');
  }
  const identified: IdentifiedSocket = socket;
  identified[peerKey] ??= svidOf(socket);
  // TLS judged the certificate by the machine's clock, and so does this.
  if (identified[peerKey].expiresAtMs <= Date.now()) {
    throw refused('The client certificate has expired.');
  }
  return identified[peerKey].id;
}

function svidOf(socket: TLSSocket): SvidFacts {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (certificate === undefined) {
    throw refused('The connection carries no verified client certificate.');
  }
  return readSvid(certificate.raw);
}

function refused(message: string): AppError {
  return new AppError('unauthenticated', genericCode('unauthenticated'), message);
}

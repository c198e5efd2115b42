import type { SecureServerOptions, ServerHttp2Session } from 'node:http2';
import { createSecureContext, type PeerCertificate, type SecureContextOptions } from 'node:tls';
import { type ChannelCredentials, credentials, ServerCredentials } from '@grpc/grpc-js';
import { AppError } from '#core/errors/errors.ts';
import { clientIdOfName, readSvid, type SvidFacts } from '#kit/workload/svid.ts';
import type { Workload } from '#kit/workload/workload.ts';
import type { RpcPeer } from './call.ts';
import { FLOW_WINDOW_BYTES, MAX_CONCURRENT_STREAMS } from './wire.ts';

/** A peer and the time its certificate ends. */
export interface IdentifiedPeer extends RpcPeer {
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

/**
 * grpc-js has no option for the flow window of a server's streams; these settings are passed to its HTTP/2 listener and
 * replace its own.
 */
const listenerOptions: SecureServerOptions = {
  requestCert: true,
  rejectUnauthorized: true,
  minVersion: 'TLSv1.3',
  settings: { maxConcurrentStreams: MAX_CONCURRENT_STREAMS, initialWindowSize: FLOW_WINDOW_BYTES.stream },
};

/**
 * Server credentials that follow the workload's SVID. grpc-js watches them and calls setSecureContext on the listener,
 * which stays open; handshakes after a rotation use the new certificate and bundle.
 */
export class SvidServerCredentials extends ServerCredentials {
  readonly #workload: Workload;
  readonly #forget: () => void;

  constructor(workload: Workload) {
    super(listenerOptions, contextOptions(workload));
    this.#workload = workload;
    this.#forget = workload.onRotate(() => this.updateSecureContextOptions(contextOptions(this.#workload)));
  }

  /** Stops watching the workload. */
  close(): void {
    this.#forget();
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

function contextOptions(workload: Workload): SecureContextOptions {
  const { ca, cert, key } = workload.current();
  return { ca, cert, key, minVersion: 'TLSv1.3' };
}

/**
 * Channel credentials of the current SVID. The server's certificate must chain to the bundle, be an X.509-SVID of the
 * same trust domain and name an accepted identity; host names are not checked.
 */
export function channelCredentials(
  workload: Workload,
  accepts: (spiffeId: string) => boolean,
): ChannelCredentials {
  return credentials.createFromSecureContext(createSecureContext(contextOptions(workload)), {
    checkServerIdentity: (_host: string, certificate: PeerCertificate) => {
      try {
        const { id, trustDomain } = readSvid(certificate.raw);
        if (trustDomain === workload.trustDomain && accepts(id)) return undefined;
        return new Error(`the server is ${id}, which is not the expected identity`);
      } catch (error) {
        return error instanceof Error ? error : new Error('the server certificate was refused');
      }
    },
  });
}

/** The part of a server call that gives access to its connection. */
export interface ConnectedCall {
  getAuthContext(): { readonly sslPeerCertificate?: PeerCertificate | undefined };
}

/**
 * Judges client certificates. TLS has only verified a chain to some authority of the bundle. The identity rules are
 * applied here, once a connection, because Node needs 0.15 ms to read a peer's certificate. Expiry is judged at each
 * call, because a connection can outlive its certificate. An accepted connection also gets its flow window here, the
 * only place where grpc-js gives access to it.
 */
export class PeerJudge {
  readonly #trustDomain: string;
  readonly #nowMs: () => number;
  readonly #known = new WeakMap<object, IdentifiedPeer>();

  constructor(trustDomain: string, nowMs: () => number) {
    this.#trustDomain = trustDomain;
    this.#nowMs = nowMs;
  }

  /** Errors: unauthenticated/SVID_REFUSED. */
  judge(call: ConnectedCall): IdentifiedPeer {
    const connection = connectionOf(call);
    const peer = (connection && this.#known.get(connection)) ?? this.#learn(call, connection);
    if (peer.expiresAtMs <= this.#nowMs()) throw refused('the client certificate has expired; connect again');
    return peer;
  }

  #learn(call: ConnectedCall, connection: ServerHttp2Session | undefined): IdentifiedPeer {
    const certificate = call.getAuthContext().sslPeerCertificate;
    if (certificate === undefined) throw refused('a client certificate is required');
    const peer = peerOf(readSvid(certificate.raw), this.#trustDomain);
    if (connection === undefined) return peer;
    this.#known.set(connection, peer);
    widen(connection);
    return peer;
  }
}

/**
 * The HTTP/2 session of a call. grpc-js has it but does not expose it. Where it cannot be found, the certificate is
 * read at every call, which is slower and as safe.
 */
export function connectionOf(call: object): ServerHttp2Session | undefined {
  const { call: inner } = call as { readonly call?: { readonly stream?: { readonly session?: unknown } } };
  const session = inner?.stream?.session;
  return typeof session === 'object' && session !== null ? (session as ServerHttp2Session) : undefined;
}

/**
 * Widens the window of the connection: the listener's settings apply to its streams alone (RFC 9113, section 6.9.2).
 */
function widen(connection: ServerHttp2Session): void {
  if (!connection.destroyed) connection.setLocalWindowSize(FLOW_WINDOW_BYTES.connection);
}

function peerOf(facts: SvidFacts, trustDomain: string): IdentifiedPeer {
  if (facts.trustDomain !== trustDomain) throw refused('the client is of another trust domain');
  const clientId = clientIdOfName(facts);
  if (clientId === undefined) throw refused('the client is no service of this installation');
  return { spiffeId: facts.id, clientId, expiresAtMs: facts.expiresAtMs };
}

function refused(reason: string): AppError {
  return new AppError('unauthenticated', 'SVID_REFUSED', reason);
}

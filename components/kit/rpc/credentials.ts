import { createSecureContext, type PeerCertificate, type SecureContextOptions } from 'node:tls';
import { type ChannelCredentials, credentials, ServerCredentials } from '@grpc/grpc-js';
import { AppError } from '#core/errors/errors.ts';
import { clientIdOfName, readSvid, type SvidFacts } from '#kit/workload/svid.ts';
import type { Workload } from '#kit/workload/workload.ts';
import type { RpcPeer } from './call.ts';

const KNOWN_PEERS_LIMIT = 1024;

/** A peer and the time its certificate ends. */
export interface KnownPeer extends RpcPeer {
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

/**
 * Server credentials that follow the workload's SVID (decision D43). grpc-js watches them and calls setSecureContext
 * on the listener, which stays open; handshakes after a rotation use the new certificate and bundle.
 */
export class SvidServerCredentials extends ServerCredentials {
  readonly #workload: Workload;
  readonly #forget: () => void;

  constructor(workload: Workload) {
    super({ requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' }, contextOptions(workload));
    this.#workload = workload;
    this.#forget = workload.onRotate(() => this.updateSecureContextOptions(contextOptions(this.#workload)));
  }

  /** Ends the watch on the workload. */
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
 * Channel credentials of this moment's SVID. The server's certificate must chain to the bundle, be an X.509-SVID of
 * our trust domain and name an accepted identity; host names play no part.
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
        return new Error(`the server is ${id}, which is not who was expected`);
      } catch (error) {
        return error instanceof Error ? error : new Error('the server certificate was refused');
      }
    },
  });
}

/**
 * Judges client certificates. TLS has proven only that a chain to some authority of the bundle exists; the identity
 * rules come here. Facts are kept by certificate fingerprint; expiry is judged at each call, because a connection can
 * outlive the certificate it was opened with.
 */
export class PeerJudge {
  readonly #trustDomain: string;
  readonly #nowMs: () => number;
  readonly #known = new Map<string, KnownPeer>();

  constructor(trustDomain: string, nowMs: () => number) {
    this.#trustDomain = trustDomain;
    this.#nowMs = nowMs;
  }

  /** Errors: unauthenticated/SVID_REFUSED. */
  judge(certificate: PeerCertificate | undefined): KnownPeer {
    if (certificate === undefined) throw refused('a client certificate is required');
    const peer = this.#known.get(certificate.fingerprint256) ?? this.#learn(certificate);
    if (peer.expiresAtMs <= this.#nowMs()) throw refused('the client certificate has expired; connect again');
    return peer;
  }

  #learn(certificate: PeerCertificate): KnownPeer {
    const peer = peerOf(readSvid(certificate.raw), this.#trustDomain);
    if (this.#known.size >= KNOWN_PEERS_LIMIT) this.#known.clear();
    this.#known.set(certificate.fingerprint256, peer);
    return peer;
  }
}

function peerOf(facts: SvidFacts, trustDomain: string): KnownPeer {
  if (facts.trustDomain !== trustDomain) throw refused('the client is of another trust domain');
  const clientId = clientIdOfName(facts);
  if (clientId === undefined) throw refused('the client is no service of this installation');
  return { spiffeId: facts.id, clientId, expiresAtMs: facts.expiresAtMs };
}

function refused(reason: string): AppError {
  return new AppError('unauthenticated', 'SVID_REFUSED', reason);
}

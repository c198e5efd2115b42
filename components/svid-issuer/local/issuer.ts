import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import type { Authority, Leaf } from '../authority/authority.ts';
import { issuerError } from '../errors.ts';
import { openAuthority } from './directory.ts';
import { openWorkloadSocket, type WorkloadSocket } from './workload-api.ts';

// sun_path is 104 bytes on macOS, 108 on Linux, with its terminator.
const SOCKET_PATH_LIMIT_BYTES = 103;
// Tolerates peers whose clocks are a little behind.
const backdateMs = 10_000;
const retryMs = 1_000;

interface IssuerOptions {
  /** Holds the authority (`ca.key`, mode 0600, and `ca.crt`). */
  readonly dir: string;
  /** Short directory for the sockets; mode 0700. */
  readonly socketDir: string;
  /** The trust domain. */
  readonly installation: string;
  /** Client ids; each gets a socket. */
  readonly services: readonly string[];
  /** Validity of an SVID, seconds; it is replaced at half of it. Default 3600. */
  readonly svidTtlSeconds?: number;
  readonly log: Logger;
  readonly clock: Clock;
}

export interface Issuer {
  /** Client id to path of its Workload API socket; grows with add. */
  readonly sockets: Readonly<Record<string, string>>;
  readonly trustDomain: string;
  /** PEM of the authority, for clients outside. */
  readonly bundlePem: string;
  /** Opens a socket for another client id; the same path again for a known one. */
  add(clientId: string): Promise<string>;
  /** Replaces every SVID now. */
  rotate(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * The local SPIFFE issuer. It has one Workload API socket a service, because a process cannot identify the client of a
 * unix socket; the directory's mode 0700 is the attestation.
 *
 * Errors: conflict/ISSUER_TRUST_DOMAIN, invalid/ISSUER_SOCKET_PATH, unavailable/ISSUER_SOCKET.
 */
export async function startIssuer(options: IssuerOptions): Promise<Issuer> {
  const socketDir = resolve(options.socketDir);
  mkdirSync(socketDir, { recursive: true, mode: 0o700 });
  chmodSync(socketDir, 0o700);
  const authority = await openAuthority(options.dir, options.installation, options.clock);
  const issuer = new LocalIssuer(options, socketDir, authority);
  try {
    for (const clientId of options.services) await issuer.add(clientId);
  } catch (error) {
    await issuer.stop();
    throw error;
  }
  return issuer;
}

class LocalIssuer implements Issuer {
  readonly sockets: Record<string, string> = {};
  readonly trustDomain: string;
  readonly bundlePem: string;
  readonly #options: IssuerOptions;
  readonly #socketDir: string;
  readonly #authority: Authority;
  readonly #entries = new Map<string, Entry>();
  readonly #adding = new Map<string, Promise<string>>();

  constructor(options: IssuerOptions, socketDir: string, authority: Authority) {
    this.#options = options;
    this.#socketDir = socketDir;
    this.#authority = authority;
    this.trustDomain = authority.trustDomain;
    this.bundlePem = authority.certificatePem;
  }

  add(clientId: string): Promise<string> {
    const known = this.#adding.get(clientId) ?? this.#open(clientId);
    this.#adding.set(clientId, known);
    return known;
  }

  async rotate(): Promise<void> {
    for (const entry of this.#entries.values()) await entry.renew();
  }

  async stop(): Promise<void> {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    await Promise.all(entries.map((entry) => entry.stop()));
  }

  async #open(clientId: string): Promise<string> {
    const path = join(this.#socketDir, `${clientId}.sock`);
    const spiffeId = serviceSpiffeId(this.#options.installation, clientId);
    if (Buffer.byteLength(path) > SOCKET_PATH_LIMIT_BYTES) {
      throw issuerError('ISSUER_SOCKET_PATH', `${path} is too long for a unix socket`);
    }
    rmSync(path, { force: true });
    const socket = await openWorkloadSocket(path, this.#options.log);
    const entry = new Entry(
      { options: this.#options, authority: this.#authority, spiffeId, clientId },
      socket,
    );
    await entry.renew();
    this.#entries.set(clientId, entry);
    this.sockets[clientId] = path;
    return path;
  }
}

interface EntryPosition {
  readonly options: IssuerOptions;
  readonly authority: Authority;
  readonly spiffeId: string;
  readonly clientId: string;
}

/** One service: its socket and the timer that renews its SVID at half life. */
class Entry {
  readonly #place: EntryPosition;
  readonly #socket: WorkloadSocket;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(place: EntryPosition, socket: WorkloadSocket) {
    this.#place = place;
    this.#socket = socket;
  }

  async renew(): Promise<void> {
    const { options, authority, spiffeId } = this.#place;
    const ttlMs = (options.svidTtlSeconds ?? 3600) * 1000;
    const leaf = await this.#issue(ttlMs);
    this.#socket.publish({
      trustDomain: authority.trustDomain,
      spiffeId,
      leaf,
      bundle: authority.certificateDer,
    });
    this.#later(ttlMs / 2);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#socket.close();
  }

  async #issue(ttlMs: number): Promise<Leaf> {
    const nowMs = this.#place.options.clock.nowMs();
    return await this.#place.authority.issue({
      uris: [this.#place.spiffeId],
      commonName: this.#place.clientId,
      notBeforeMs: nowMs - backdateMs,
      notAfterMs: nowMs + ttlMs,
    });
  }

  #later(afterMs: number): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.renew().catch((error: unknown) => {
        this.#place.options.log.error({ err: error, clientId: this.#place.clientId }, 'svid renewal failed');
        this.#later(retryMs);
      });
    }, afterMs);
    this.#timer.unref();
  }
}

import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { AppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Svid } from './identity.ts';
import { readSvid } from './svid.ts';

const NO_ANSWER = 'no answer';

/** What a transport received, before it is judged. */
interface Received {
  /** The SPIFFE id that the sender states. */
  readonly id: string;
  /** DER, leaf first. */
  readonly chain: readonly Uint8Array[];
  readonly key: KeyObject;
  /** DER of the trust domain's authorities. */
  readonly bundle: readonly Uint8Array[];
}

/** The error of a transport that could not provide an identity. */
export function identityMissing(reason: string, cause?: unknown): AppError {
  return new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', reason, { cause });
}

/** Judges an SVID that the workload received: the SVID rules, its name, and whether the key fits. */
export function judgeReceived({ id, chain, key, bundle }: Received): Svid {
  const [leaf] = chain;
  if (leaf === undefined) throw identityMissing('an empty chain');
  const facts = readSvid(leaf);
  if (facts.id !== id) throw identityMissing('the SVID names another identity');
  if (!createPublicKey(key).equals(new X509Certificate(leaf).publicKey)) {
    throw identityMissing('the key is not the certificate’s');
  }
  return {
    id: facts.id,
    key: key.export({ format: 'pem', type: 'pkcs8' }).toString(),
    cert: pemOf(chain),
    ca: pemOf(bundle),
    expiresAtMs: facts.expiresAtMs,
  };
}

function pemOf(certificates: readonly Uint8Array[]): string {
  return certificates.map((der) => new X509Certificate(der).toString()).join('');
}

/** The newest SVID of a process, with the callers that wait for the first one and the subscribers of rotations. */
export class SvidHolder {
  readonly first: Promise<Svid>;
  /** Reason why there is no SVID yet, or no newer one; reset by each SVID. */
  lastProblem = NO_ANSWER;
  readonly #log: Logger;
  readonly #callbacks = new Set<() => void>();
  readonly #arrived = Promise.withResolvers<Svid>();
  #svid: Svid | undefined;

  constructor(log: Logger) {
    this.#log = log;
    this.first = this.#arrived.promise;
  }

  /** The current SVID, which may have expired; undefined before the first. */
  find(): Svid | undefined {
    return this.#svid;
  }

  get(): Svid {
    if (this.#svid === undefined) throw identityMissing('this process has no X.509-SVID');
    return this.#svid;
  }

  /** Calls back after each new SVID. */
  onRotate(callback: () => void): () => void {
    this.#callbacks.add(callback);
    return () => {
      this.#callbacks.delete(callback);
    };
  }

  /**
   * Accepts a newer SVID and notifies subscribers. The identity of a running process never changes.
   *
   * Errors: unavailable/WORKLOAD_IDENTITY_MISSING.
   */
  accept(svid: Svid): void {
    if (this.#svid !== undefined && this.#svid.id !== svid.id) {
      throw identityMissing('the SVID names another identity than before');
    }
    this.#svid = svid;
    this.lastProblem = NO_ANSWER;
    const expiresAt = new Date(svid.expiresAtMs).toISOString();
    this.#log.debug({ spiffeId: svid.id, expiresAt }, 'workload identity');
    this.#arrived.resolve(svid);
    for (const callback of this.#callbacks) this.#call(callback);
  }

  /** Drops all subscribers. */
  stop(): void {
    this.#callbacks.clear();
  }

  #call(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#log.error({ err: error }, 'rotation callback failed');
    }
  }
}

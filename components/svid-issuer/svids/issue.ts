import type { Clock } from '#kit/clock/clock.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import type { SigningView } from '../authority/keeper.ts';
import { refusal } from '../errors.ts';
import type { ClusterApi } from '../kubernetes/cluster-api.ts';
import { verifyCsr } from './csr.ts';
import { type IdentityRules, identify } from './identify.ts';

/** Tolerates peers whose clocks are a little behind. */
export const backdateMs = 10_000;

const reviewsLimit = 64;

interface IssueDeps {
  readonly installation: string;
  readonly rules: IdentityRules;
  readonly ttlMs: number;
  readonly cluster: Pick<ClusterApi, 'reviewToken'>;
  readonly authority: { current(): SigningView };
  readonly clock: Clock;
  /** Counts a request of a client id; throws rate_limited. */
  readonly limit: (clientId: string) => void;
}

interface IssuedSvid {
  readonly clientId: string;
  readonly spiffeId: string;
  /** PEM, leaf first. */
  readonly chain: string;
  /** PEM of every trusted root. */
  readonly bundle: string;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

/** Issues an SVID to the pod of a token, for the key of a certificate request. */
export class SvidIssue {
  readonly #deps: IssueDeps;
  #reviews = 0;

  constructor(deps: IssueDeps) {
    this.#deps = deps;
  }

  /**
   * Errors: those of errors.ts; rate_limited/RATE_LIMITED.
   */
  async issue(token: string, csr: string): Promise<IssuedSvid> {
    const { installation, rules, ttlMs, authority, clock, limit } = this.#deps;
    const clientId = identify(await this.#review(token), rules);
    limit(clientId);
    const spiffeId = serviceSpiffeId(installation, clientId);
    const publicKey = await verifyCsr(csr, spiffeId);
    const { signer, bundlePem } = authority.current();
    const nowMs = clock.nowMs();
    // Certificates have a resolution of whole seconds.
    const expiresAtMs = Math.min(Math.floor((nowMs + ttlMs) / 1_000) * 1_000, signer.notAfterMs);
    const leaf = await signer.sign(
      { uris: [spiffeId], commonName: clientId, notBeforeMs: nowMs - backdateMs, notAfterMs: expiresAtMs },
      publicKey,
    );
    return { clientId, spiffeId, chain: leaf.certificatePem, bundle: bundlePem, expiresAtMs };
  }

  async #review(token: string) {
    if (this.#reviews >= reviewsLimit) throw refusal('overloaded', { retryAfterSeconds: 1 });
    this.#reviews += 1;
    try {
      return await this.#deps.cluster.reviewToken(token, this.#deps.rules.audience);
    } finally {
      this.#reviews -= 1;
    }
  }
}

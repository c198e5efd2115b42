import { type CryptoKey, importJWK, type JWK } from 'jose';
import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';

/** Verification keys of access tokens by key id. */
export interface TokenKeys {
  /** Undefined for an unknown key id. */
  find(keyId: string): Promise<CryptoKey | undefined>;
}

const refreshMs = 5 * 60_000;
const cooldownMs = 5_000;
const keysLimit = 32;

// A JWKS may contain other members and other kinds of keys; only ES256 signature keys are used.
const es256Key = z.looseObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  kid: z.string().min(1).max(256),
  x: z.string(),
  y: z.string(),
  alg: z.literal('ES256').optional(),
  use: z.literal('sig').optional(),
});
const jwksSchema = z.looseObject({ keys: z.array(z.unknown()) });

async function importKeys(jwks: unknown): Promise<ReadonlyMap<string, CryptoKey>> {
  const keys = new Map<string, CryptoKey>();
  for (const item of jwksSchema.parse(jwks).keys.slice(0, keysLimit)) {
    const parsed = es256Key.safeParse(item);
    if (!parsed.success) continue;
    const { kty, crv, x, y, kid } = parsed.data;
    const jwk: JWK = { kty, crv, x, y };
    const key = await importJWK(jwk, 'ES256');
    if (!(key instanceof Uint8Array)) keys.set(kid, key);
  }
  return keys;
}

/** Keys of a local JWKS, of the issuer itself or of a test. The function is called at each look-up. */
export function givenKeys(jwks: () => unknown): TokenKeys {
  let before: unknown;
  let keys: Promise<ReadonlyMap<string, CryptoKey>> | undefined;
  return {
    find: async (keyId) => {
      const now = jwks();
      if (keys === undefined || now !== before) keys = importKeys(now);
      before = now;
      return (await keys).get(keyId);
    },
  };
}

export interface RemoteKeysOptions {
  /** Fetches the JWKS document; throws when it cannot. */
  readonly fetch: () => Promise<unknown>;
  readonly clock: Clock;
}

/**
 * Keys of a remote JWKS document: fetched at first use, again after 5 minutes, and for an unknown key id, but at most
 * once in 5 s, so that tokens with invented key ids cannot cause a flood of requests. While a fetch fails, the cached
 * keys stay in use.
 *
 * Errors: unavailable/TOKEN_KEYS_UNAVAILABLE when no key was ever fetched.
 */
export function remoteKeys(options: RemoteKeysOptions): TokenKeys {
  return new RemoteKeys(options);
}

class RemoteKeys implements TokenKeys {
  readonly #options: RemoteKeysOptions;
  #keys: ReadonlyMap<string, CryptoKey> | undefined;
  #attemptedAtMs = Number.NEGATIVE_INFINITY;
  #fetchedAtMs = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | undefined;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
  }

  async find(keyId: string): Promise<CryptoKey | undefined> {
    const known = this.#keys?.get(keyId);
    const nowMs = this.#options.clock.nowMs();
    if (known !== undefined) {
      // In the background: a known key never waits for a refresh.
      if (nowMs - this.#fetchedAtMs > refreshMs) this.#refresh(nowMs).catch(() => undefined);
      return known;
    }
    await this.#refresh(nowMs);
    return this.#keys?.get(keyId);
  }

  async #refresh(nowMs: number): Promise<void> {
    if (this.#fetching === undefined && nowMs - this.#attemptedAtMs >= cooldownMs) {
      this.#attemptedAtMs = nowMs;
      this.#fetching = this.#fetch(nowMs).finally(() => {
        this.#fetching = undefined;
      });
    }
    try {
      await this.#fetching;
    } catch (cause) {
      if (this.#keys === undefined) throw unavailable(cause);
    }
    if (this.#keys === undefined) throw unavailable(undefined);
  }

  async #fetch(nowMs: number): Promise<void> {
    this.#keys = await importKeys(await this.#options.fetch());
    this.#fetchedAtMs = nowMs;
  }
}

function unavailable(cause: unknown): AppError {
  return new AppError(
    'unavailable',
    'TOKEN_KEYS_UNAVAILABLE',
    'the keys of access tokens cannot be fetched',
    {
      cause,
      retryAfterSeconds: 5,
    },
  );
}
